// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/types"
)

func TestContain(t *testing.T) {
	cause := errors.New("cause")
	for _, tc := range []struct {
		name   string
		f      func() error
		want   string
		goexit bool
	}{
		{"nil", func() error { return nil }, "", false},
		{"an error", func() error { return cause }, "cause", false},
		{"a panic", func() error { panic("boom") }, "the handler panicked: boom", false},
		{"a panic with an error", func() error { panic(cause) }, "the handler panicked: cause", false},
		{"a panic with nil", func() error { panic(nil) }, "the handler panicked: panic called with nil argument", false},
		{"a nil dereference", func() error { var p *int; *p = 1; return nil }, "the handler panicked: runtime error: invalid memory address or nil pointer dereference", false},
		{"the end of the goroutine", func() error { runtime.Goexit(); return nil }, "the handler ended its goroutine (runtime.Goexit)", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := contain(tc.f)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if tc.want == "" && err != nil || !strings.HasPrefix(got, tc.want) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			p, panicked := errors.AsType[*types.PanicError](err)
			if panicked != (tc.want != "" && tc.want != "cause") {
				t.Fatalf("%T", err)
			}
			if panicked && (p.Goexit != tc.goexit || !strings.Contains(string(p.Stack), "contain_test.go")) {
				t.Errorf("goexit %t, stack:\n%s", p.Goexit, p.Stack)
			}
			if panicked && errors.Is(err, cause) {
				t.Error("what was thrown counts as an answer")
			}
		})
	}
}

func TestAnErrorThatIsANilPointerIsNotHandedOn(t *testing.T) {
	err := contain(func() error { var err *types.PanicError; return err })
	if err == nil || !strings.Contains(err.Error(), "the handler returned an error of type *types.PanicError that is a nil pointer") {
		t.Errorf("got the error %v", err)
	}
}
