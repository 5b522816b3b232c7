// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

// reference is what kubectl and client-go make of a document.
func reference(t *testing.T, text string) (any, bool) {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, false
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, false
	}
	return value, true
}

func TestValuesAreWhatKubectlMakesOfThem(t *testing.T) {
	scalars := []string{
		"", "~", "null", "Null", "nUll", "yes", "Yes", "yEs", "no", "on", "off", "y", "n", "Y", "true", "TRUE", "tRue",
		"0", "-0", "+1", "1", "-1", "0777", "08", "0o17", "0x1F", "0b101", "-0b101", "1_000", "_1", "1__0",
		"9007199254740993", "9223372036854775807", "-9223372036854775808", "9.3e18", "1.0e300",
		"1.0", "1.5", "1.", ".5", "1e3", "1E3", "1e-3", "1e21", "1e20", "1e18", "123456789012345678.0", "4611686018427387904.0",
		"-.5", "+.5", ".", "..", "-", "+", "1:30", "1:30:00", "2001-12-14", "2001-12-14t21:59:43.10-05:00", "12:00", "0x", "1.2.3", "1e", "e1",
		`"5"`, "'5'", `"yes"`, `"\u00e9\n"`, "!!str 5", "!!str yes", "!!int 5", `!!int "5"`, "!!float 5", "!!bool yes", "!!null ~", "!!binary aGVsbG8=",
		"!custom 5", "!!timestamp 2001-01-01", "{}", "[]", "[1, [2, {a: 3}]]", "{a: 1, b: {c: [x]}}", "{1: a, true: b, 1.5: c}", "a: b", "- a\n- b",
		"|\n  text\n  more\n", "|-\n  text\n", "|+\n  text\n\n", ">\n  folded\n  text\n", "plain\n  over lines", "a: &x [1]\nb: *x",
		"a: &x {b: 1}\nc:\n  <<: *x\n  d: 2", "a: {\"<<\": 1}", "\"tab\\there\"", "a: # comment\n  b", "? a\n: b", "a:\tb", "- - a\n  - b\n- c",
		"'it''s'", "\"\\x41\\u0042\"", "a: {b, c}", "[a: b]", "k: \"multi\n  line\"",
	}
	for _, text := range scalars {
		t.Run(text, func(t *testing.T) {
			want, ok := reference(t, text)
			got, err := Value([]byte(text))
			if !ok {
				t.Skipf("no reference; got %v, %v", got, err)
			}
			if err != nil {
				t.Fatalf("got the error %v, want %#v", err, want)
			}
			check.Equal(t, want, got)
		})
	}
}

func TestValueRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"not a number", "a: .nan", "line 1: .nan is no number"},
		{"infinity", "a: 1\nb: -.inf", "line 2: -.inf is no number"},
		{"a key set twice", "a: 1\nb:\n  c: 1\n  c: 2", `line 4: key "c" is set twice, first in line 3`},
		{"keys that are the same as strings", "1: a\n\"1\": b", `line 2: key "1" is set twice, first in line 1`},
		{"keys that are the same as booleans", "yes: a\ntrue: b", `line 2: key "true" is set twice`},
		{"a key that is a list", "? [a]\n: b", "line 1: the key of a map must be a string, not a map or a list"},
		{"a key that is null", "~: b", `line 1: the key of a map must be a string, not "~"`},
		{"a tag that does not fit", "a: !!int x", "line 1: the value does not fit its tag !!int"},
		{"bad base64", "a: !!binary '*'", "line 1: the value of !!binary is not a text in base64"},
		{"binary data", "a: !!binary /w==", "line 1: the value of !!binary is not a text in base64: it is not valid UTF-8"},
		{"an alias of nothing", "a: 1\nb: [*x]\n", "line 2: alias *x: there is no anchor &x"},
		{"an alias in what it stands for", "a: &x\n  - *x", "line 2: alias *x stands inside of what it refers to"},
		{"a merge of itself", "a: &x\n  <<: *x", "line 2: alias *x stands inside"},
		{"a merge of a string", "a:\n  <<: x", "line 2: the value of << must be a map"},
		{"a merge of a list of lists", "a:\n  <<: [[{b: 1}]]", "line 2: the value of << must be a map"},
		{"a whole number beyond int64", "a: 9223372036854775808", "line 1: the number is out of range: 9223372036854775808 is beyond"},
		{"a whole number below int64", "a: -9223372036854775809", "-9223372036854775809 is beyond"},
		{"a whole number beyond uint64", "a: 18446744073709551616", "18446744073709551616 is beyond"},
		{"a number of many digits", "a: " + strings.Repeat("9", 400), "99... is beyond"},
		{"a hexadecimal number beyond int64", "a: 0xFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFF is beyond"},
		{"a number beyond all floats", "a: 1e400", "1e400 is beyond what a number in an object can be; put it into quotes"},
		{"a number below all floats", "a: -1.5e400", "-1.5e400 is beyond"},
		{"a key beyond int64", "9223372036854775808: a", "9223372036854775808 is beyond"},
		{"a key beyond uint64", "99999999999999999999: a", "99999999999999999999 is beyond"},
		{"a number in JSON that is no YAML", `{"\ud83d\ude00": 9223372036854775808}`, "line 1: the number is out of range"},
		{"two documents", "a: 1\n---\nb: 1", "line 3: want one document, got 2"},
		{"deep nesting", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "nested deeper than 500 levels"},
		{"deeper nesting", strings.Repeat("[", 100_000), "exceeded max depth"},
		{"deep JSON", strings.Repeat(`{"\ud83d\ude00":`, 2000) + "1" + strings.Repeat("}", 2000), "line 1: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			value, err := Value([]byte(test.text))
			if err == nil {
				t.Fatalf("got %v, want an error", value)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %q, want it to contain %q", err, test.want)
			}
		})
	}
}

func TestMergedKeysNeverWin(t *testing.T) {
	got := check.Must(Value([]byte("x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  b: 0\n  <<: [*x, *y]\n")))(t)
	want := map[string]any{"a": int64(1), "b": int64(0), "c": int64(2)}
	check.Equal(t, want, got.(map[string]any)["z"])
}

// A text that stands for many is shared by all of them, until the value is encoded.
func TestATextThatIsRepeatedByAliasesIsRefused(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	aliases := strings.Repeat("*a, ", 9_999)
	for name, text := range map[string]string{
		"values":              "a: &a " + long + "\nb: [" + aliases + "]",
		"values of maps":      "a: &a {k: " + long + "}\nb: [" + aliases + "]",
		"keys":                "a: &a " + long + "\nb: [" + strings.Repeat("{*a : 1}, ", 9_999) + "]",
		"keys of maps":        "a: &a {? " + long + " : 1}\nb: [" + aliases + "]",
		"merged maps":         "a: &a {k: " + long + "}\nb: [" + strings.Repeat("{<<: *a}, ", 9_999) + "]",
		"lists of merged":     "a: &a {k: " + long + "}\nb:\n  <<: [" + aliases + "]",
		"documents of stream": strings.Repeat("a: &a "+long+"\nb: ["+strings.Repeat("*a, ", 30)+"]\n---\n", 12),
	} {
		_, errs := Parse([]byte(text))
		if len(errs) == 0 || !errors.Is(errs[0], ErrLimit) || !strings.Contains(errs[0].Error(), "expand to more than 16777216 bytes") {
			t.Errorf("%s: got the errors %.300v", name, errs)
		}
	}
}

func TestWhatAnotherParserReadsIsMeasuredFirst(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	for name, test := range map[string]struct{ text, want string }{
		"a text":        {"a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 9_999) + "]", "expand to more than 16777216 bytes"},
		"many values":   {"a: &a [" + strings.Repeat("x,", 1000) + "]\nb: [" + strings.Repeat("*a, ", 9_999) + "]", "expand to more than 100000 values"},
		"nesting":       {"a: &a " + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "\nb: " + strings.Repeat("[", 400) + "*a" + strings.Repeat("]", 400), "nested deeper than 500 levels"},
		"in itself":     {"a: &a [*a]", "alias *a stands inside of what it refers to"},
		"no aliases":    {"a: " + long, ""},
		"a few aliases": {"a: &a " + long + "\nb: [*a, *a]", ""},
		"no YAML":       {"a: &a *", ""},
	} {
		err := CheckAliases([]byte(test.text))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got the error %v, want %q", name, err, test.want)
		}
	}
}

// A text that the common encoder writes without quotes stays a text.
func TestTextsThatLookLikeNumbersAreQuoted(t *testing.T) {
	value := map[string]any{"sha": "123e456", "1e400": []any{"-1.5e999", "12e34", "1e4567 x", "text\n1e400\n"}, "n": int64(5)}
	data := check.Must(yaml.Marshal(value))(t)
	if _, err := Value(data); !errors.Is(err, ErrNumber) {
		t.Errorf("got the error %v without quotes", err)
	}
	got := check.Must(Value(Quoted(data)))(t)
	check.Equal(t, any(value), got)
	for _, text := range []string{"a: 1e5\n", "a: .inf\nb: 1e300\n", "a: [\n"} {
		if quoted := Quoted([]byte(text)); string(quoted) != text {
			t.Errorf("got %q for %q", quoted, text)
		}
	}
}

func TestAliasesShareNothing(t *testing.T) {
	value := check.Must(Value([]byte("a: &x {k: v}\nb: *x\n")))(t)
	m := value.(map[string]any)
	m["a"].(map[string]any)["k"] = "changed"
	data, _ := json.Marshal(m["b"])
	if string(data) != `{"k":"v"}` {
		t.Errorf("a change of one shows in the other: %s", data)
	}
}

// FuzzValue compares with the parser of kubectl: what both accept, they must read alike. Objects have values of JSON only.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb: [x, 0777, 1e3, yes]\n", "? a\n: b\n", "a: &x {k: v}\nb: *x\n", "- |\n  t\n- >-\n  u\n",
		`{"a": "\ud83d\ude00", "b": 1.0}`, "a: !!int '5'\n", "1.5: x\n", "a: 2001-01-01\n", "'a': \"b\\n\"\n",
		configMap + "---\n" + configMap, "kind: List\nitems:\n- kind: x\n", "a: &x [*x]\n", "\ufeff{}", "--- |\n x\n", "a:\r\n\tb",
		`{"metadata": {"labels": {"a": 1}}}`, "? [a]\n: b\n", "<<: {a: 1}\n", "%YAML 1.1\n---\na\n...\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := Decode("a.yaml", []byte(text))
		if err != nil && objects != nil {
			t.Error("objects with an error")
		}
		for _, o := range objects {
			// DeepCopy panics if there is a value that is none of JSON's.
			if o = o.DeepCopy(); o.GetKind() == "" || o.GetAPIVersion() == "" {
				t.Errorf("%q: an object without a type", text)
			}
		}
		got, err := Value([]byte(text))
		if err != nil {
			return
		}
		// Merges, tags and separators are read differently on purpose.
		if strings.Contains(text, "<<") || strings.Contains(text, "!") || strings.Contains(text, "---") || strings.Contains(text, "...") || strings.Contains(text, "%") {
			return
		}
		if want, ok := reference(t, text); ok && !reflect.DeepEqual(want, got) {
			t.Errorf("%q: got %#v, want %#v", text, got, want)
		}
	})
}
