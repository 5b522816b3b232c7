// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
)

// quoted is what stands in double quotes and is no word.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.){6,}"`)

// rule hides what looks like a credential, whatever its value is.
type rule struct {
	// any of these is in a text that the rule may match; in lower case.
	hints   []string
	pattern *regexp.Regexp
	with    string
}

var rules = []rule{
	// The body of a request or an answer about Secrets, as client-go logs it.
	{[]string{`"kind":"secret`}, regexp.MustCompile(`("(?:data|stringData)":)\{[^{}]*\}`), "${1}\"" + Mark + "\""},
	// A dump of a binary body.
	{[]string{"00000000  "}, regexp.MustCompile(`(?s)00000000  [0-9a-f]{2} [0-9a-f]{2} .*`), Mark},
	{[]string{"private key"}, regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`), Mark},
	{[]string{"authorization"}, regexp.MustCompile(`(?i)(authorization"?\s*[:=]\s*(?:\[?"?)?(?:(?:bearer|basic|negotiate|digest|token)\s+)?)[^\s"',;\]\[]+`), "${1}" + Mark},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`\b((?i:bearer|basic)\s+)(?:[A-Za-z+/_~.-]{7,}[0-9]|[A-Za-z+/_~.-]*[0-9][A-Za-z0-9+/_~.-]{7})[A-Za-z0-9+/_~.-]*=*`), "${1}" + Mark},
	{[]string{"://"}, regexp.MustCompile(`(://)[^/\s@"'<>?#]+@`), "${1}" + Mark + "@"},
	{[]string{"token", "password", "secret", "signature", "sig=", "key="}, regexp.MustCompile(`(?i)([?&](?:[a-z_.-]*(?:token|password|passwd|secret|signature|api[_-]?key|access[_-]?key)|sig|key)=)[^&\s"'#]+`), "${1}" + Mark},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), Mark},
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
