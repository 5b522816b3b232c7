// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFindsTheDocuments(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // number@line=value
	}{
		{"nothing", "", nil},
		{"blanks and comments", "\n# a\n---\n  \n---\n# b\n", nil},
		{"null", "---\nnull\n---\n~\n", nil},
		{"one without separator", "a: 1\n", []string{"1@1=map[a:1]"}},
		{"comment before the content", "# a\n\na: 1\n", []string{"1@3=map[a:1]"}},
		{"separators first and last", "---\na: 1\n---\n", []string{"1@2=map[a:1]"}},
		{"two, and empty ones between", "a: 1\n---\n---\n\n---\nb: 2", []string{"1@1=map[a:1]", "2@6=map[b:2]"}},
		{"carriage returns", "a: 1\r\n---\r\nb: 2\r\n", []string{"1@1=map[a:1]", "2@3=map[b:2]"}},
		{"lone carriage returns", "a: 1\r---\rb: 2\r", []string{"1@1=map[a:1]", "2@3=map[b:2]"}},
		{"a byte order mark", "\ufeffa: 1\n", []string{"1@1=map[a:1]"}},
		{"a comment at the separator", "a: 1\n--- # second\nb: 2\n", []string{"1@1=map[a:1]", "2@3=map[b:2]"}},
		{"content at the separator", "--- {a: 1}\n--- {b: 2}\n", []string{"1@1=map[a:1]", "2@2=map[b:2]"}},
		{"an end marker", "a: 1\n...\n# x\n---\nb: 2\n...\nc: 3\n", []string{"1@1=map[a:1]", "2@5=map[b:2]", "3@7=map[c:3]"}},
		{"a directive", "%YAML 1.1\n---\na: 1\n", []string{"1@3=map[a:1]"}},
		{"a separator in an indented text", "a: |\n  ---\n  b\n---\nc: 1\n", []string{"1@1=map[a:---\nb\n]", "2@5=map[c:1]"}},
		{"dashes that are no separator", "a: ----\nb: |\n  x\n----: 1\n", []string{"1@1=map[----:1 a:---- b:x\n]"}},
		{"JSON", `{"a": {"b": [1, true, null]}}`, []string{"1@1=map[a:map[b:[1 true <nil>]]]"}},
		{"JSON with tabs", "{\n\t\"a\": [\n\t\t1\n\t]\n}\n", []string{"1@1=map[a:[1]]"}},
		{"JSON objects in a row", "{\"a\": 1}\n{\"b\": 2} {\"c\": 3}\n", []string{"1@1=map[a:1]", "2@2=map[b:2]", "3@2=map[c:3]"}},
		{"JSON with surrogates", `{"a": "\ud83d\ude00"}`, []string{"1@1=map[a:😀]"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			documents, errs := Parse([]byte(test.text))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got []string
			for _, d := range documents {
				got = append(got, fmt.Sprintf("%d@%d=%v", d.Number, d.Line, d.Value))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseNamesTheLine(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"colon in a value", "a: 1\nb: c: d\n", []string{"document 1, line 2: mapping values are not allowed in this context"}},
		{"colon in the first line", "a: b: c\n", []string{"document 1, line 1: mapping values are not allowed in this context"}},
		{"wrong indentation", "a: 1\nb:\n  c: 1\n d: 2\ne: 3\n", []string{"document 1, line 4: did not find expected key"}},
		{"far below where the map starts", "a:\n  x: 1\n  y: 2\n  z: 3\n wrong: 4\n", []string{"document 1, line 5: did not find expected key"}},
		{"text after a quote", "a: b\nc: 'x' y\n", []string{"document 1, line 2: did not find expected key"}},
		{"list among keys", "a: b\n- c\n", []string{"document 1, line 2: did not find expected key"}},
		{"a tab", "a: 1\nb:\n\tc: 2\n", []string{"document 1, line 3: found character that cannot start any token"}},
		{"an open quote", "a: 1\nb: \"x\nc: 2\n", []string{"document 1, line 2: found unexpected end of stream"}},
		{"an open bracket", "a: 1\nb: [1, 2\n", []string{"document 1, line 2: did not find expected ',' or ']'"}},
		{"a merge conflict", "a: 1\n<<<<<<< HEAD\nb: 2\n", []string{"document 1, line 2: could not find expected ':'"}},
		{"a lone brace", "}\n", []string{"document 1, line 1: did not find expected node content"}},
		{"template remains", "a: 1\nb: {{ x }}\nc: 1\n", []string{"document 1, line 2: the key of a map must be a string, not a map or a list"}},
		{"bytes that are no text", "a: 1\nb: \xff\n", []string{"document 0, line 2: the text is not valid UTF-8"}},
		{"a control character", "a: 1\nb: \x01\n", []string{"document 0, line 2: the character U+0001 is not allowed"}},
		{"a zero", "a: \x00\n", []string{"document 0, line 1: the character U+0000 is not allowed"}},
		{"UTF-16", "\xff\xfea\x00", []string{"document 0, line 1: the text is not valid UTF-8"}},
		{"two documents without separator", "{a: 1}\nb: 2\n", []string{"document 1, line 2: want \"---\" in a line of its own before the next document"}},
		{
			"mistakes in several documents", "a: 1\na: 2\n---\nb: 1\n---\nx: [\n---\nc: 1\nd: *y\n",
			[]string{
				"document 1, line 2: key \"a\" is set twice, first in line 1",
				"document 3, line 6: did not find expected node content",
				"document 4, line 9: alias *y: there is no anchor &y before it in this document",
			},
		},
		{
			"the first of several mistakes in a document", "x: 1\n---\na: 1\na: 2\nb: .inf\nb: 3\n",
			[]string{"document 2, line 4: key \"a\" is set twice, first in line 3"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, errs := Parse([]byte(test.text))
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
