package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
	// maxInvented bounds what one call of a random function makes, in bytes.
	maxInvented = 1 << 20
)

// invention stands in for everything that is not a function of a chart and its values: time, chance and made-up keys become
// functions of a clock, a seed and how often they were asked. Two seeds that differ by one differ in every random character.
type invention struct {
	clock time.Time
	seed  uint64
	draws uint64
	used  map[string]bool
}

func newInvention(clock time.Time, seed uint64) *invention {
	return &invention{clock: clock.UTC(), seed: seed, used: map[string]bool{}}
}

// called names the functions that were asked, sorted.
func (m *invention) called() []string {
	return append([]string{}, slices.Sorted(maps.Keys(m.used))...)
}

// below is a number in [0, n): one that chance alone would give, moved on by the seed.
func (m *invention) below(n int) int {
	m.draws++
	var input [8]byte
	binary.BigEndian.PutUint64(input[:], m.draws)
	sum := sha256.Sum256(input[:])
	size := uint64(n)
	return int((binary.BigEndian.Uint64(sum[:8])%size + m.seed%size) % size)
}

func (m *invention) text(alphabet string, count int) (string, error) {
	if count < 0 || count > maxInvented {
		return "", fmt.Errorf("cannot make up %d characters", count)
	}
	out := make([]byte, count)
	for i := range out {
		out[i] = alphabet[m.below(len(alphabet))]
	}
	return string(out), nil
}

func (m *invention) bytes(count int) []byte {
	out := make([]byte, count)
	for i := range out {
		out[i] = byte(m.below(256))
	}
	return out
}

// functions replace those of Helm's map.
func (m *invention) functions() template.FuncMap {
	random := func(name, alphabet string) any {
		return func(count int) (string, error) { m.used[name] = true; return m.text(alphabet, count) }
	}
	var ascii strings.Builder
	for c := byte(32); c < 127; c++ {
		ascii.WriteByte(c)
	}
	replaced := template.FuncMap{
		"now":          func() time.Time { m.used["now"] = true; return m.clock },
		"ago":          m.ago,
		"randAlphaNum": random("randAlphaNum", letters+digits),
		"randAlpha":    random("randAlpha", letters),
		"randNumeric":  random("randNumeric", digits),
		"randAscii":    random("randAscii", ascii.String()),
		"randInt":      m.randInt,
		"randBytes":    m.randBytes,
		"shuffle":      m.shuffle,
		"uuidv4":       m.uuid,
		"bcrypt":       func(input string) string { m.used["bcrypt"] = true; return m.bcrypt(input) },
		"htpasswd":     m.htpasswd,
		"encryptAES":   m.encryptAES,
		"keys":         sortedKeys,
		"values":       sortedValues,
	}
	maps.Copy(replaced, m.dates())
	maps.Copy(replaced, m.certificates())
	return replaced
}

// dates wraps the functions that fall back to the present when they are given no date.
func (m *invention) dates() template.FuncMap {
	original := sprig.TxtFuncMap()
	inZone := original["dateInZone"].(func(string, any, string) string)
	format := func(name, layout string, date any, zone string) string {
		switch date.(type) {
		case time.Time, *time.Time, int64, int, int32:
		default:
			m.used[name], date = true, m.clock
		}
		return inZone(layout, date, zone)
	}
	const day, local = "2006-01-02", "Local"
	return template.FuncMap{
		"date":           func(layout string, date any) string { return format("date", layout, date, local) },
		"dateInZone":     func(layout string, date any, zone string) string { return format("dateInZone", layout, date, zone) },
		"date_in_zone":   func(layout string, date any, zone string) string { return format("date_in_zone", layout, date, zone) },
		"htmlDate":       func(date any) string { return format("htmlDate", day, date, local) },
		"htmlDateInZone": func(date any, zone string) string { return format("htmlDateInZone", day, date, zone) },
	}
}

func (m *invention) ago(date any) string {
	m.used["ago"] = true
	then := m.clock
	switch date := date.(type) {
	case time.Time:
		then = date
	case int64:
		then = time.Unix(date, 0)
	case int:
		then = time.Unix(int64(date), 0)
	}
	return m.clock.Sub(then).Round(time.Second).String()
}

func (m *invention) randInt(low, high int) (int, error) {
	m.used["randInt"] = true
	if high <= low {
		return 0, fmt.Errorf("randInt: %d is not above %d", high, low)
	}
	return low + m.below(high-low), nil
}

func (m *invention) randBytes(count int) (string, error) {
	m.used["randBytes"] = true
	if count < 0 || count > maxInvented {
		return "", fmt.Errorf("cannot make up %d bytes", count)
	}
	return base64.StdEncoding.EncodeToString(m.bytes(count)), nil
}

// shuffle turns the text by one character more for each step of the seed.
func (m *invention) shuffle(text string) string {
	m.used["shuffle"] = true
	runes := []rune(text)
	if len(runes) < 2 {
		return text
	}
	turn := int(m.seed % uint64(len(runes)))
	return string(runes[turn:]) + string(runes[:turn])
}

func (m *invention) uuid() string {
	m.used["uuidv4"] = true
	id := m.bytes(16)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// bcrypt has the form of a hash, with a made-up salt; it verifies nothing, and what it would protect is refused as different.
func (m *invention) bcrypt(input string) string {
	const alphabet = "./" + letters + digits
	sum := sha256.Sum256([]byte(input))
	salt, _ := m.text(alphabet, 22)
	hash := base64.RawURLEncoding.EncodeToString(sum[:])[:31]
	return "$2a$10$" + salt + strings.NewReplacer("-", ".", "_", "/").Replace(hash)
}

func (m *invention) htpasswd(user, password string) string {
	m.used["htpasswd"] = true
	if strings.Contains(user, ":") {
		return fmt.Sprintf("invalid username: %s", user)
	}
	return user + ":" + m.bcrypt(password)
}

func (m *invention) encryptAES(password, plain string) (string, error) {
	m.used["encryptAES"] = true
	if plain == "" {
		return "", nil
	}
	key := make([]byte, 32)
	copy(key, password)
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	content := append([]byte(plain), strings.Repeat(string(rune(padding)), padding)...)
	iv := m.bytes(aes.BlockSize)
	sealed := make([]byte, len(content))
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(sealed, content)
	return base64.StdEncoding.EncodeToString(append(iv, sealed...)), nil
}

// sortedKeys gives keys in one of the orders that Helm may give, always the same one.
func sortedKeys(dicts ...map[string]any) []string {
	keys := []string{}
	for _, dict := range dicts {
		keys = append(keys, slices.Sorted(maps.Keys(dict))...)
	}
	return keys
}

// sortedValues gives values in the order of their keys.
func sortedValues(dict map[string]any) []any {
	values := []any{}
	for _, key := range slices.Sorted(maps.Keys(dict)) {
		values = append(values, dict[key])
	}
	return values
}
