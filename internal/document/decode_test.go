// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

func TestDecodeReturnsTheObjects(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"comments only", "# nothing\n---\n# here\n", nil},
		{"one", configMap, []string{"v1 ConfigMap a"}},
		{"several", configMap + "---\n---\n" + strings.ReplaceAll(configMap, "name: a", "name: b"), []string{"v1 ConfigMap a", "v1 ConfigMap b"}},
		{"carriage returns", strings.ReplaceAll(configMap+"---\n"+configMap, "\n", "\r\n"), []string{"v1 ConfigMap a", "v1 ConfigMap a"}},
		{"a byte order mark", "\ufeff" + configMap, []string{"v1 ConfigMap a"}},
		{"JSON", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`, []string{"v1 ConfigMap a"}},
		{"a list stays one", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(configMap), "\n", "\n  "), []string{"v1 List "}},
		{"a list of one kind", "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata:\n    name: a\n", []string{"v1 ConfigMapList "}},
		{"an empty list", "apiVersion: v1\nkind: List\nitems: []\n", []string{"v1 List "}},
		{"no list but a kind that sounds like one", "apiVersion: x/v1\nkind: BlackList\nmetadata:\n  name: a\nitems: 5\n", []string{"x/v1 BlackList a"}},
		{"a kind that sounds like one, with items", "apiVersion: x/v1\nkind: BlackList\nmetadata:\n  name: a\nitems: [x]\n", []string{"x/v1 BlackList a"}},
		{"a generated name, which is checked later", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: a-\n", []string{"v1 ConfigMap "}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := Decode("a.yaml", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, fmt.Sprintf("%s %s %s", o.GetAPIVersion(), o.GetKind(), o.GetName()))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDecodeNamesFileDocumentAndLine(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"does not parse", configMap + "---\na: b: c\n", []string{"a.yaml: document 2, line 6: mapping values are not allowed in this context"}},
		{"key twice", configMap + "data: {}\ndata: {}\n", []string{`a.yaml: document 1, line 6: key "data" is set twice, first in line 5`}},
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
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := Decode("a.yaml", []byte(test.text))
			if err == nil {
				t.Fatalf("got %d objects, want an error", len(objects))
			}
			if diff := cmp.Diff(test.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var one *DecodeError
			if !errors.As(err, &one) || one.File != "a.yaml" {
				t.Errorf("the error holds no DecodeError of the file: %#v", err)
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

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		configMap, configMap + "---\n" + configMap, "kind: List\nitems:\n- kind: x\n", "a: &x [*x]\n", "\ufeff{}", "--- |\n x\n", "a:\r\n\tb",
		`{"metadata": {"labels": {"a": 1}}}`, "? [a]\n: b\n", "<<: {a: 1}\n", "%YAML 1.1\n---\na\n...\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := Decode("a.yaml", data)
		if err != nil && objects != nil {
			t.Error("objects with an error")
		}
		for _, o := range objects {
			// DeepCopy panics if there is a value that is none of JSON's.
			o = o.DeepCopy()
			if o.GetKind() == "" || o.GetAPIVersion() == "" {
				t.Errorf("%q: an object without a type", data)
			}
		}
	})
}
