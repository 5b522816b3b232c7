// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestOutput(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": "shop", "labels": map[string]any{"a": "b"}},
		"spec":   map[string]any{"port": int64(80), "share": 0.5, "long": strings.Repeat("x", maxOutput+1)},
		"status": map[string]any{"host": "example.com", "ready": true},
	}}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "Z2VoZWlt", "binary": "/w=="},
	}}
	for _, tt := range []struct {
		expression, want string
		isPlain, secret  bool
		err              string
	}{
		{expression: "self.status.host", want: "example.com", isPlain: true},
		{expression: "self.?status.?host", want: "example.com", isPlain: true},
		{expression: "self.metadata.name + '.' + self.metadata.namespace", want: "web.shop", isPlain: true},
		{expression: "has(self.status.ready) ? 'yes' : 'no'", want: "yes", isPlain: true},
		{expression: "'constant'", want: "constant", isPlain: true},
		{expression: "self.status.ready", want: "true", isPlain: true},
		{expression: "self.spec.port", want: "80"},
		{expression: "self.spec.share", want: "0.5"},
		{expression: "self.metadata.labels.a", want: "b"},
		{expression: "self['status'].host", want: "example.com"},
		{expression: "[self].map(x, x.spec.port)[0]", want: "80"},
		{expression: "dyn(self).status.host", want: "example.com"},
		{expression: "self.?spec.?missing", want: "absent"},
		{expression: "self.?spec.?missing.orValue('none')", want: "none"},
		{expression: "self.spec.missing", err: "self.spec.missing: no such key: missing"},
		{expression: "self.status.ports[0]", err: "self.status.ports[0]: no such key: ports"},
		{expression: "self.spec", err: "self.spec: the expression gives map, not a string, a number or a bool"},
		{expression: "self.spec.long", err: "self.spec.long: the value has 1025 bytes, and at most 1024 are allowed"},
		{expression: "dyn(self.spec)", err: "the expression gives map, not a string, a number or a bool"},
		{expression: "self.status.missing + 'x'", err: "no such key: missing"},
		{expression: "int(self.status.host)", err: "type conversion error from 'string' to 'int'"},
		{expression: "int(self.status.host)", secret: true, err: "its expression fails, with an error that may quote values and is not shown"},
		{expression: "self.spec.missing", secret: true, err: "self.spec.missing: no such key: missing"},
		{expression: "self.spec.missing + 'x'", err: "its expression fails, with an error that may quote values and is not shown"},
		{expression: "self.spec['missing']", err: "its expression fails, with an error that may quote values and is not shown"},
		{expression: "self[self.metadata.name]", err: "its expression fails, with an error that may quote values and is not shown"},
	} {
		program, err := CompileOutput(tt.expression)
		if err != nil {
			t.Errorf("%s: %v", tt.expression, err)
			continue
		}
		value, found, err := program.Evaluate(object, tt.secret)
		if !found && err == nil {
			value = "absent"
		}
		if tt.err != "" && (err == nil || err.Error() != tt.err) || tt.err == "" && (err != nil || value != tt.want || program.IsPlain() != tt.isPlain) {
			t.Errorf("%s: got %q, plain %t, error %v; want %q, plain %t, error %q", tt.expression, value, program.IsPlain(), err, tt.want, tt.isPlain, tt.err)
		}
	}
	for expression, want := range map[string]string{"self.data.password": "geheim", "self.data.binary": ""} {
		program, err := CompileOutput(expression)
		if err != nil {
			t.Fatal(err)
		}
		if value, _, err := program.Evaluate(secret, true); value != want || (err != nil) != (want == "") {
			t.Errorf("%s of a Secret: got %q and the error %v; want %q", expression, value, err, want)
		}
	}
}

func TestOutputRefusesOtherTypes(t *testing.T) {
	for expression, want := range map[string]string{
		"[1]": "gives list(int)", "{'a': 1}": "gives map(string, int)", "optional.of([1])": "gives optional_type(list(int))", "self.": "character", "nope": "undeclared reference",
	} {
		if _, err := CompileOutput(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want one with %q", expression, err, want)
		}
	}
}
