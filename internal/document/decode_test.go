// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

func TestDecodeReturnsTheObjects(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"one", configMap, []string{"v1 ConfigMap a"}},
		{"several", configMap + "---\n---\n" + strings.ReplaceAll(configMap, "name: a", "name: b"), []string{"v1 ConfigMap a", "v1 ConfigMap b"}},
		{"a list stays one", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(configMap), "\n", "\n  "), []string{"v1 List "}},
		{"a list of one kind", "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata:\n    name: a\n", []string{"v1 ConfigMapList "}},
		{"an empty list", "apiVersion: v1\nkind: List\nitems: []\n", []string{"v1 List "}},
		{"no list but a kind that sounds like one", "apiVersion: x/v1\nkind: BlackList\nmetadata:\n  name: a\nitems: 5\n", []string{"x/v1 BlackList a"}},
		{"a kind that sounds like one, with items", "apiVersion: x/v1\nkind: BlackList\nmetadata:\n  name: a\nitems: [x]\n", []string{"x/v1 BlackList a"}},
		{"a generated name, which is checked later", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: a-\n", []string{"v1 ConfigMap "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := check.Must(Decode("a.yaml", []byte(test.text)))(t)
			var got []string
			for _, o := range objects {
				got = append(got, fmt.Sprintf("%s %s %s", o.GetAPIVersion(), o.GetKind(), o.GetName()))
			}
			check.Equal(t, test.want, got)
		})
	}
}

func TestDecodeNamesFileDocumentAndLine(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"does not parse", configMap + "---\na: b: c\n", []string{"a.yaml: document 2, line 6: mapping values are not allowed in this context"}},
		{"no text", "\x00", []string{"a.yaml: line 1: the character U+0000 is not allowed"}},
		{"a string", "hello\n", []string{"a.yaml: document 1, line 1: want an object, got a string"}},
		{"a list", configMap + "---\n- a\n", []string{"a.yaml: document 2, line 6: want an object, got a list"}},
		{"an empty object", "{}", []string{"a.yaml: document 1, line 1: apiVersion is missing", "a.yaml: document 1, line 1: kind is missing", "a.yaml: document 1, line 1: metadata.name is missing"}},
		{"kind of the wrong type", "apiVersion: v1\nkind: 5\nmetadata:\n  name: a\n", []string{"a.yaml: document 1, line 2: kind is a number, want a string"}},
		{"empty kind", "apiVersion: v1\nkind: \"\"\nmetadata:\n  name: a\n", []string{"a.yaml: document 1, line 2: kind is empty"}},
		{"no name", "apiVersion: v1\nkind: A\nmetadata:\n  labels: {}\n", []string{"a.yaml: document 1, line 3: metadata.name is missing"}},
		{"metadata of the wrong type", "apiVersion: v1\nkind: A\nmetadata: []\n", []string{"a.yaml: document 1, line 3: metadata is a list, want a map"}},
		{"a name that is a number", "apiVersion: v1\nkind: A\nmetadata:\n  name: 123\n", []string{"a.yaml: document 1, line 4: metadata.name is a number, want a string; put it into quotes"}},
		{
			"labels and annotations of wrong types", configMap + "  labels: x\n  annotations:\n    ok: \"1\"\n    order: 5\n    flag: yes\n",
			[]string{
				"a.yaml: document 1, line 5: metadata.labels is a string, want a map",
				`a.yaml: document 1, line 9: metadata.annotations["flag"] is a boolean, want a string; put it into quotes`,
				`a.yaml: document 1, line 8: metadata.annotations["order"] is a number, want a string; put it into quotes`,
			},
		},
		{
			"items of a list", "apiVersion: v1\nkind: List\nitems:\n- x\n- apiVersion: v1\n  kind: A\n  metadata:\n    name: a\n    labels: {a: 1}\n- kind: List\n  apiVersion: v1\n  items:\n  - kind: B\n",
			[]string{
				"a.yaml: document 1, line 4: items[0]: want an object, got a string",
				`a.yaml: document 1, line 9: items[1]: metadata.labels["a"] is a number, want a string; put it into quotes`,
				"a.yaml: document 1, line 13: items[2]: items[0]: apiVersion is missing",
				"a.yaml: document 1, line 13: items[2]: items[0]: metadata.name is missing",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects, err := Decode("a.yaml", []byte(test.text))
			if err == nil {
				t.Fatalf("got %d objects, want an error", len(objects))
			}
			check.Equal(t, test.want, strings.Split(err.Error(), "\n"))
			var one *Error
			if !errors.As(err, &one) || one.File != "a.yaml" {
				t.Errorf("the error holds no Error of the file: %#v", err)
			}
		})
	}
}

func TestDecodeNeverShowsValues(t *testing.T) {
	const secret = "hunter2"
	for _, text := range []string{
		"password: " + secret + ": x\n",
		"apiVersion: " + secret + "\nkind: [" + secret + "]\nmetadata: " + secret + "\n",
		secret,
		"a: !!int " + secret,
		configMap + "  labels: " + secret + "\n",
		"a: \"" + secret + "\nb: x",
	} {
		if _, err := Decode("a.yaml", []byte(text)); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: got the error %v", text, err)
		}
	}
}

func TestDecodeLimitsTheNumberOfMistakes(t *testing.T) {
	_, err := Decode("a.yaml", []byte(strings.Repeat("---\nx\n", 10_000)))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 51 || lines[50] != "a.yaml: 9950 more mistakes" {
		t.Errorf("got %d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestParseFindsTheDocuments(t *testing.T) {
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			documents, errs := Parse([]byte(test.text))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got []string
			for _, d := range documents {
				got = append(got, fmt.Sprintf("%d@%d=%v", d.Number, d.Line, d.Value))
			}
			check.Equal(t, test.want, got)
		})
	}
}

func TestParseNamesTheLine(t *testing.T) {
	for _, test := range []struct {
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
		{"bytes that are no text", "a: 1\nb: \xff\n", []string{"line 2: the text is not valid UTF-8"}},
		{"a control character", "a: 1\nb: \x01\n", []string{"line 2: the character U+0001 is not allowed"}},
		{"a zero", "a: \x00\n", []string{"line 1: the character U+0000 is not allowed"}},
		{"UTF-16", "\xff\xfea\x00", []string{"line 1: the text is not valid UTF-8"}},
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
	} {
		t.Run(test.name, func(t *testing.T) {
			_, errs := Parse([]byte(test.text))
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			check.Equal(t, test.want, got)
		})
	}
}
