// Command clicklink-render is Helm's own library behind a pipe: one request in, rendered objects out.
//
// It reads one JSON request from stdin and makes the renderings that it asks for, one after the other. Of each it prints a line that says how
// many objects there are, and one JSON line for each; of one that printed what the first did, the word "same". What is wrong with a chart is one line
// on stderr and exit code 1. It opens nothing and asks nobody: it is meant to run confined. What the objects mean, and whether renderings
// that are not the same differ in what counts, is decided by who reads them.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	_ "time/tzdata"
)

const (
	// protocol is the version of the request and answer format; a reader of another version does not go on.
	protocol = 3
	// helmVersion is what charts see as .Capabilities.HelmVersion, and the module version in go.mod.
	helmVersion = "v4.3.1"
	// maxRequest bounds the request: archive, values and capabilities.
	maxRequest = 64 << 20
	// maxBeginning and maxEnd bound the message of a failure, in characters.
	maxBeginning = 700
	maxEnd       = 1200
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Printf("{\"protocol\":%d,\"helm\":%q}\n", protocol, helmVersion)
		return
	}
	// Helm's library chats; stderr is for the one line that explains a failure.
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	// A chart must not see in which time zone it is rendered.
	time.Local = time.UTC

	out := bufio.NewWriter(os.Stdout)
	err := run(os.Stdin, out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, oneLine(err.Error()))
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var req request
	body := io.LimitReader(in, maxRequest+1)
	decoder := json.NewDecoder(body)
	if err := decoder.Decode(&req); err != nil {
		return fmt.Errorf("the request is not readable: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the request is followed by something else, or is too large")
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var first *rendering
	for _, from := range req.Inventions {
		made, err := render(&req, from)
		if err != nil {
			return err
		}
		if first != nil && made.same(first) {
			err = encoder.Encode(same)
		} else {
			err = made.write(encoder)
		}
		if err != nil {
			return err
		}
		if first == nil {
			first = made
		}
	}
	return nil
}

func (r *rendering) write(encoder *json.Encoder) error {
	objects, err := r.objects()
	if err != nil {
		return err
	}
	meta := metadata{Name: r.chart.Metadata.Name, Version: r.chart.Metadata.Version, AppVersion: r.chart.Metadata.AppVersion}
	line := head{Objects: len(objects), Functions: r.functions, Chart: meta}
	if err := encoder.Encode(map[string]head{"rendering": line}); err != nil {
		return err
	}
	for _, object := range objects {
		if err := encoder.Encode(object); err != nil {
			return err
		}
	}
	return nil
}

// oneLine joins the lines of Helm's messages, which put the place and the reason below one another. Of a message that is too long to be
// read, as that of a template which includes itself, the beginning stays, and the end, where Helm puts the reason.
func oneLine(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	line := []rune(strings.Join(parts, " "))
	if len(line) > maxBeginning+maxEnd {
		return string(line[:maxBeginning]) + " … " + string(line[len(line)-maxEnd:])
	}
	return string(line)
}
