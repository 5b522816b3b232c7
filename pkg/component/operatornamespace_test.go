// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"testing"
)

func TestOperatorNamespace(t *testing.T) {
	tests := []struct {
		name           string
		option         *string
		variable, file string
		want, err      string
	}{
		{name: "outside of a cluster", want: "default"},
		{name: "in a pod", file: "operators\n", want: "operators"},
		{name: "the variable comes before the file", variable: "mine", file: "operators", want: "mine"},
		{name: "the option comes first", option: new("chosen"), variable: "mine", file: "operators", want: "chosen"},
		{name: "an empty option is a mistake", option: new(""), variable: "mine", err: `option OperatorNamespace ""`},
		{name: "a bad option", option: new("a/b"), err: `option OperatorNamespace "a/b"`},
		{name: "a bad variable", variable: "A", err: `variable POD_NAMESPACE "A"`},
		{name: "a bad file", file: "a b", err: `file /var/run/secrets/kubernetes.io/serviceaccount/namespace "a b"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := operatorNamespace(test.option, surroundings{
				getenv: func(string) string { return test.variable },
				readFile: func(string) ([]byte, error) {
					if test.file == "" {
						return nil, errors.New("no such file")
					}
					return []byte(test.file), nil
				},
			})
			if test.err != "" {
				checkMistakes(t, err, test.err)
			} else if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}
