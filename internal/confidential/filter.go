// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package confidential

import (
	"regexp"
	"strings"
)

// Placeholder replaces hidden values.
const Placeholder = "***"

// maxText bounds a text; the rest is cut off.
const maxText = 1 << 20

// forms are how credentials look. A hint, in lower case, is in each text that the pattern may match.
var forms = []struct {
	hint    string
	pattern *regexp.Regexp
	with    string
}{
	{"-----begin ", regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|$)`), Placeholder},
	{"authorization", regexp.MustCompile(`(?i)(authorization"?\s*[:=]\s*(?:\[?"?)?(?:[a-z]+\s+)?)[^\s"',;\]\[]+`), "${1}" + Placeholder},
	{"bearer", regexp.MustCompile(`(?i)(\bbearer\s+)(?:[a-z+/_~.-]{7,}[0-9]|[a-z+/_~.-]*[0-9][a-z0-9+/_~.-]{7})[a-z0-9+/_~.-]*=*`), "${1}" + Placeholder},
	{"://", regexp.MustCompile(`(://)[^/\s@"'<>?#]+@`), "${1}" + Placeholder + "@"},
}

// Filter removes texts that look like credentials: bearer tokens, Authorization headers, user
// information in URLs, and PEM blocks.
func Filter(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	lower := strings.ToLower(text)
	for _, form := range forms {
		if strings.Contains(lower, form.hint) {
			text = form.pattern.ReplaceAllString(text, form.with)
		}
	}
	return text
}
