// Command probe stands in for the chart engine and tries what a confined engine must not be able to do.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
)

func main() {
	what, where := os.Args[1], ""
	if len(os.Args) > 2 {
		where = os.Args[2]
	}
	var err error
	switch what {
	case "--version":
		fmt.Println(`{"protocol":3,"helm":"probe"}`)
		return
	case "read":
		_, err = os.ReadFile(where)
	case "list":
		_, err = os.ReadDir(where)
	case "write":
		err = os.WriteFile(where, []byte("x"), 0o600)
	case "exec":
		err = syscall.Exec(where, []string{where}, nil)
	case "tcp", "udp":
		_, err = net.Dial(what, where)
	case "unix":
		_, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	case "netlink":
		_, err = syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW, 0)
	case "io_uring":
		if _, _, errno := syscall.Syscall(425, 1, 0, 0); errno != 0 {
			err = errno
		}
	case "signal":
		err = syscall.Kill(os.Getppid(), 0)
	case "environment":
		fmt.Print(os.Environ())
		return
	case "memory":
		var all [][]byte
		for {
			block := make([]byte, 16<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			all = append(all, block)
			runtime.KeepAlive(all)
		}
	case "spin":
		for range runtime.NumCPU() {
			go func() {
				for {
				}
			}()
		}
		select {}
	case "sleep":
		time.Sleep(time.Hour)
	case "flood":
		line := make([]byte, 1<<20)
		for {
			if _, err = os.Stdout.Write(line); err != nil {
				break
			}
		}
	case "fail":
		fmt.Fprintln(os.Stderr, "chart/templates/x.yaml:3: no such value")
		os.Exit(1)
	}
	if err != nil {
		fmt.Print("denied: ", err)
		return
	}
	fmt.Print("done")
}
