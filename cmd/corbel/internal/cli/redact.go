// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/sentence"
)

const (
	// shortest is the shortest value of a Secret that is replaced outside of Secrets. Shorter ones stand in nearly every text.
	shortest = 4
	// longest is the longest such value. Longer ones are archives, such as the records of Helm, which nothing repeats.
	longest = 16 << 10
	// shortestLine is the shortest line of a value that is replaced without the rest of the value, such as a line of a key.
	shortestLine = 16
	// confidentialName is how names of confidential values end.
	confidentialName = `(?i)(?:pass(?:word|wd|phrase)|pwd|token|(?:api|access|secret|private|encryption)[_-]?key|client[_-]?secret|credentials?)`
)

var (
	nameEnd = regexp.MustCompile(confidentialName + `$`)
	// namedValue is a confidential value in a text, with its name before it.
	namedValue = regexp.MustCompile(`(` + confidentialName + `\\?["']?[ \t]*[=:][ \t]*)("(?:\\.|[^"\\])*"|'[^']*'|\\"[^"]*"|[^\s"',;&]+)`)
	// variableName is in the name of an environment variable with a confidential value.
	variableName = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|cred|auth`)
	// cutMark is at the end of a text that was cut.
	cutMark = regexp.MustCompile(`…|\.\.\.`)
)

// redactor replaces confidential values in texts and objects.
type redactor struct {
	values *strings.Replacer
	begins map[string][]string // the values, by their first bytes
}

// newRedactor returns a redactor for values of Secrets, in the forms in which objects and logs repeat them.
func newRedactor(values [][]byte) redactor {
	var forms []string
	for _, value := range values {
		if len(value) <= longest {
			forms = append(forms, formsOf(string(value))...)
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) // a value may be a part of another one
	var pairs []string
	begins := map[string][]string{}
	for _, form := range slices.Compact(forms) {
		if len(form) >= shortest && form != "true" && form != "false" && form != "null" {
			pairs = append(pairs, form, confidential.Placeholder)
			begins[form[:shortest]] = append(begins[form[:shortest]], form)
		}
	}
	return redactor{strings.NewReplacer(pairs...), begins}
}

func formsOf(value string) []string {
	trimmed := strings.TrimSpace(value)
	inJSON, _ := json.Marshal(trimmed) // a text has a JSON
	inLog := strconv.Quote(trimmed)
	asJSON, asLog := string(inJSON[1:len(inJSON)-1]), inLog[1:len(inLog)-1]
	inURL := strings.ReplaceAll(url.QueryEscape(trimmed), "+", "%20")
	forms := []string{value, trimmed, asJSON, asLog, asciiOf(asJSON), asciiOf(asLog),
		url.QueryEscape(trimmed), url.PathEscape(trimmed), inURL, strings.ReplaceAll(inURL, "%2F", "/"), inScripts.Replace(inURL),
		sentence.OneLine(trimmed), sentence.Printable(trimmed), sentence.Printable(sentence.OneLine(trimmed))} // as in conditions and plans
	for _, plain := range []string{value, trimmed} {
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(plain)), base64.RawURLEncoding.EncodeToString([]byte(plain)))
	}
	for line := range strings.Lines(trimmed) {
		if line = strings.TrimSpace(line); len(line) >= shortestLine && !strings.ContainsAny(line, " \t") {
			forms = append(forms, line)
		}
	}
	if address, err := url.Parse(trimmed); err == nil && address.User != nil {
		password, _ := address.User.Password()
		forms = append(forms, password)
	}
	for _, match := range namedValue.FindAllStringSubmatch(value, -1) {
		forms = append(forms, strings.Trim(match[2], `\"'`))
	}
	return forms
}

// inScripts undoes what encodeURIComponent of JavaScript does not escape.
var inScripts = strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// asciiOf escapes what is not ASCII, as the libraries for JSON of some languages do.
func asciiOf(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// text replaces values of Secrets, texts that look like credentials, and values with a confidential name before them.
func (r redactor) text(text string) string {
	return namedValue.ReplaceAllString(confidential.Filter(r.withoutValues(text)), "${1}"+confidential.Placeholder)
}

// withoutValues replaces values of Secrets, also the beginning of one before the mark of a cut, such as in a long field of a plan.
func (r redactor) withoutValues(text string) string {
	var out strings.Builder
	done := 0
	for _, mark := range cutMark.FindAllStringIndex(text, -1) {
		before := text[done:mark[0]]
		for i := 0; i+shortest <= len(before); i++ {
			if slices.ContainsFunc(r.begins[before[i:i+shortest]], func(form string) bool { return strings.HasPrefix(form, before[i:]) }) {
				before = before[:i] + confidential.Placeholder
			}
		}
		out.WriteString(before + text[mark[0]:mark[1]])
		done = mark[1]
	}
	return r.values.Replace(out.String() + text[done:])
}

// object replaces what is confidential in a value of JSON.
func (r redactor) object(value any) any {
	switch v := value.(type) {
	case string:
		return r.text(v)
	case []any:
		flag := ""
		for i, element := range v {
			v[i] = r.object(element)
			if strings.HasPrefix(flag, "-") && nameEnd.MatchString(flag) {
				v[i] = confidential.Placeholder
			}
			flag, _ = element.(string)
		}
	case map[string]any:
		name, _ := v["name"].(string)
		for _, key := range slices.Collect(maps.Keys(v)) {
			field := v[key]
			_, isText := field.(string)
			if key == "binaryData" || key == corev1.LastAppliedConfigAnnotation || isText && (nameEnd.MatchString(key) || key == "value" && variableName.MatchString(name)) {
				field = confidential.Placeholder
			}
			delete(v, key) // put back under another key, or the same
			v[r.values.Replace(key)] = r.object(field)
		}
	}
	return value
}
