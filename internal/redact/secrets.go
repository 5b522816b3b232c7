// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Placeholder replaces what is hidden.
const Placeholder = "[redacted]"

const (
	// minLength is the least number of bytes of a value that is hidden: shorter
	// ones occur in any text.
	minLength = 6
	// maxBytes bounds the values of a set. It is the size that a Secret may have.
	maxBytes = 1 << 20
	// maxText bounds a text; what is longer is cut off.
	maxText = 1 << 20
	// longText is the length from which a text may have been cut off without a sign.
	longText = 200
	// longPrefix is how many bytes of a longer value are worth hiding.
	longPrefix = 16
	// maxBytesPrinted is the length up to which a value is also found as the numbers
	// of its bytes, which is how Go prints them.
	maxBytesPrinted = 128
)

// Secrets is a set of values to hide. A nil set holds none, and still hides what looks
// like a credential. It is safe for concurrent use.
//
// The set is bounded. Once more was added than it can hold, it hides everything that
// stands in quotes.
type Secrets struct {
	mu     sync.Mutex
	values map[string]struct{}
	size   int
	full   bool
	// public are values that are no secrets, because objects are named so.
	public map[string]struct{}
	// forms are the values as they may be written in a text, by their first bytes.
	// They are made for the first text after an addition, because most sets see few.
	forms   map[head]map[string]struct{}
	pending []string
}

// head is how a form starts.
type head [minLength]byte

// New returns an empty set.
func New() *Secrets { return &Secrets{} }

// Add adds values. Each is hidden as a whole, and so are the parts that a message may
// repeat alone, such as its lines and the password of a URL. Values of less than 6
// bytes are not hidden.
func (s *Secrets) Add(values ...string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		if _, known := s.values[value]; known || len(value) < minLength {
			continue
		}
		if s.size+len(value) > maxBytes {
			s.full = true
			return
		}
		s.size += len(value)
		if s.values == nil {
			s.values = map[string]struct{}{}
		}
		s.values[value] = struct{}{}
		s.pending = append(s.pending, value)
	}
}

// isName matches what can be the name of an object and is long enough to be hidden.
var isName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:-]{4,251}[A-Za-z0-9]$`)

// Publish adds names of objects, which are no secrets even if a Secret holds them: an
// inventory names them anyway.
func (s *Secrets) Publish(names ...string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		// A manifest may have a value in the place of a name.
		if !isName.MatchString(name) {
			continue
		}
		if s.public == nil {
			s.public = map[string]struct{}{}
		}
		s.public[name] = struct{}{}
	}
}

// Copy returns a set with the same values, without what was published.
func (s *Secrets) Copy() *Secrets {
	copied := New()
	copied.Include(s)
	return copied
}

// Include adds the values of another set.
func (s *Secrets) Include(other *Secrets) {
	if s == nil {
		return
	}
	values, full := other.snapshot()
	s.Add(slices.Collect(maps.Keys(values))...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = s.full || full
}

// Size returns how many bytes the values take.
func (s *Secrets) Size() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Equal reports whether two sets hold the same values.
func (s *Secrets) Equal(other *Secrets) bool {
	a, fullA := s.snapshot()
	b, fullB := other.snapshot()
	return fullA == fullB && maps.Equal(a, b)
}

func (s *Secrets) snapshot() (values map[string]struct{}, full bool) {
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values), s.full
}

// Text returns the text without secrets.
func (s *Secrets) Text(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	if s != nil {
		text = s.withoutValues(text)
	}
	return withoutCredentials(text)
}

// quoted is what stands in double quotes and is no word.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.){6,}"`)

func (s *Secrets) withoutValues(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range s.pending {
		s.index(value)
	}
	s.pending = nil
	if s.full {
		text = quoted.ReplaceAllString(text, `"`+Placeholder+`"`)
	}
	if len(s.forms) == 0 {
		return text
	}
	var b strings.Builder
	done := 0 // up to here the text is in b, or hidden
	for i := 0; i+minLength <= len(text); {
		n := s.matchAt(text, i)
		if n == 0 {
			i++
			continue
		}
		b.WriteString(text[done:i])
		b.WriteString(Placeholder)
		i += n
		done = i
	}
	b.WriteString(text[done:])
	return b.String()
}

// matchAt returns how many bytes from i on belong to a secret, the most of all forms.
func (s *Secrets) matchAt(text string, i int) int {
	longest := 0
	for form := range s.forms[head([]byte(text[i:i+minLength]))] {
		n := minLength
		for n < len(form) && i+n < len(text) && form[n] == text[i+n] {
			n++
		}
		if _, public := s.public[form]; n <= longest || public {
			continue
		}
		if n == len(form) || n >= longPrefix || isCut(text, i+n) {
			longest = n
		}
	}
	return longest
}

// isCut reports whether the text was cut off at the position.
func isCut(text string, at int) bool {
	rest := text[at:]
	return rest == "" && len(text) >= longText || strings.HasPrefix(rest, "...") || strings.HasPrefix(rest, "…")
}

// index adds the forms of a value and of its parts.
func (s *Secrets) index(value string) {
	if s.forms == nil {
		s.forms = map[head]map[string]struct{}{}
	}
	for _, part := range append(partsOf(value), value) {
		if len(part) < minLength {
			continue
		}
		for _, form := range formsOf(part) {
			if len(form) < minLength {
				continue
			}
			h := head([]byte(form[:minLength]))
			if s.forms[h] == nil {
				s.forms[h] = map[string]struct{}{}
			}
			s.forms[h][form] = struct{}{}
		}
	}
}

// formsOf returns how a value may be written in a message, itself first.
func formsOf(value string) []string {
	// Messages are made one line.
	forms := []string{value, strings.TrimSpace(value), strings.Join(strings.Fields(value), " ")}
	// A quoted value may be quoted again, as in a logged response of the server.
	for _, once := range escapesOf(value) {
		forms = append(append(forms, once), escapesOf(once)...)
	}
	forms = append(forms, url.QueryEscape(value), url.PathEscape(value), base64.RawStdEncoding.EncodeToString([]byte(value)))
	if len(value) <= maxBytesPrinted {
		printed := fmt.Sprint([]byte(value))
		forms = append(forms, printed[1:len(printed)-1])
	}
	return forms
}

// escapesOf returns the value as it stands between the quotes of Go and of JSON.
func escapesOf(value string) []string {
	escaped := []string{strconv.Quote(value)}
	if encoded, err := json.Marshal(value); err == nil {
		escaped = append(escaped, string(encoded))
	}
	for i, form := range escaped {
		escaped[i] = form[1 : len(form)-1]
	}
	return escaped
}

var (
	// assignments of what is named like a credential, in YAML, JSON, environments and
	// properties.
	assignments = regexp.MustCompile(`(?i)[\w.-]*(?:pass|pwd|token|secret|key|cred|auth)[\w.-]*["']?[ \t]*[:=][ \t]*` +
		`("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',{}\[\]]+)`)
	// passwords of URLs.
	passwords = regexp.MustCompile(`://[^\s/:@]*:([^\s/@]+)@`)
	// yamlLine is a line of YAML or JSON that begins with a field. To hide it as a whole
	// would hide ordinary words, such as the fields of a kubeconfig.
	yamlLine = regexp.MustCompile(`^(?:- )?["']?[\w./-]+["']?:(?:\s|$)`)
)

// partsOf returns the parts of a value that a message may repeat alone.
func partsOf(value string) []string {
	if !strings.ContainsAny(value, ":=\n") { // most are one word
		return nil
	}
	var parts []string
	for _, pattern := range []*regexp.Regexp{assignments, passwords} {
		for _, match := range pattern.FindAllStringSubmatch(value, -1) {
			right := match[1]
			if unquoted, err := strconv.Unquote(right); err == nil {
				parts = append(parts, unquoted)
			}
			parts = append(parts, strings.Trim(right, `"'`))
		}
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); !yamlLine.MatchString(line) {
			parts = append(parts, line)
		}
	}
	return parts
}

// rule hides what looks like a credential.
type rule struct {
	// any of these is in a text that the rule may match; in lower case.
	hints   []string
	pattern *regexp.Regexp
	with    string
}

var rules = []rule{
	// The body of a request or a response about Secrets, as client-go logs it.
	{[]string{`"kind":"secret`}, regexp.MustCompile(`("(?:data|stringData)":)\{[^{}]*\}`), "${1}\"" + Placeholder + "\""},
	// A dump of a binary body.
	{[]string{"00000000  "}, regexp.MustCompile(`(?s)00000000  [0-9a-f]{2} [0-9a-f]{2} .*`), Placeholder},
	{[]string{"private key"}, regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`), Placeholder},
	{[]string{"authorization"}, regexp.MustCompile(`(?i)(authorization"?\s*[:=]\s*(?:\[?"?)?(?:(?:bearer|basic|negotiate|digest|token)\s+)?)[^\s"',;\]\[]+`), "${1}" + Placeholder},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`\b((?i:bearer|basic)\s+)(?:[A-Za-z+/_~.-]{7,}[0-9]|[A-Za-z+/_~.-]*[0-9][A-Za-z0-9+/_~.-]{7})[A-Za-z0-9+/_~.-]*=*`), "${1}" + Placeholder},
	{[]string{"://"}, regexp.MustCompile(`(://)[^/\s@"'<>?#]+@`), "${1}" + Placeholder + "@"},
	{[]string{"token", "password", "secret", "signature", "sig=", "key="}, regexp.MustCompile(`(?i)([?&](?:[a-z_.-]*(?:token|password|passwd|secret|signature|api[_-]?key|access[_-]?key)|sig|key)=)[^&\s"'#]+`), "${1}" + Placeholder},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), Placeholder},
}

// withoutCredentials applies the rules.
func withoutCredentials(text string) string {
	lower := strings.ToLower(text)
	for _, r := range rules {
		for _, hint := range r.hints {
			if strings.Contains(lower, hint) {
				text = r.pattern.ReplaceAllString(text, r.with)
				break
			}
		}
	}
	return text
}
