// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// Mark stands where something was hidden.
const Mark = "[redacted]"

const (
	// maxText is how much of a text is told at all, in bytes.
	maxText = 1 << 20
	// longText is the length from which a text may have been cut without a sign.
	longText = 200
	// tellingPrefix is how many bytes of a longer value are worth hiding.
	tellingPrefix = 16
)

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

func (s *Secrets) withoutValues(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.now.full || s.old.full {
		text = quoted.ReplaceAllString(text, `"`+Mark+`"`)
	}
	if len(s.now.byHead) == 0 && len(s.old.byHead) == 0 {
		return text
	}
	var b strings.Builder
	told := 0 // up to here the text is in b, or hidden
	for i := 0; i+minLength <= len(text); {
		n := s.matchAt(text, i)
		if n == 0 {
			i++
			continue
		}
		b.WriteString(text[told:i])
		b.WriteString(Mark)
		i += n
		told = i
	}
	if told == 0 {
		return text
	}
	b.WriteString(text[told:])
	return b.String()
}

// matchAt returns how many bytes from i on belong to a secret, the most that any
// value claims.
func (s *Secrets) matchAt(text string, i int) int {
	h := head([]byte(text[i : i+minLength]))
	longest := 0
	for _, candidates := range [][]string{s.now.byHead[h], s.old.byHead[h]} {
		for _, value := range candidates {
			n := common(value, text[i:])
			whole := n == len(value)
			if n > longest && !s.isPublic(value) && (whole || n >= tellingPrefix || isCut(text, i+n)) {
				longest = n
			}
		}
	}
	return longest
}

// isCut tells whether the text was cut off at the position.
func isCut(text string, at int) bool {
	rest := text[at:]
	return rest == "" && len(text) >= longText || strings.HasPrefix(rest, "...") || strings.HasPrefix(rest, "…")
}

// common is the length of the common prefix.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
