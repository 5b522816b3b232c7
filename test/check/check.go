// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package check ends tests that meet an error, and runs functions that report their findings to a test.
package check

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// NoError fails the test if there is an error, and ends it.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns the value of a call, or fails the test if the call returns an error.
func Must[V any](value V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		NoError(t, err)
		return value
	}
}

// ErrorOf returns the error of a call.
func ErrorOf[V any](_ V, err error) error { return err }

// Fails expects an error with all parts.
func Fails(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, want one with %q", parts)
		return
	}
	Contains(t, err.Error(), parts...)
}

// Contains expects a text with all parts. Each text has an empty part, and all of no parts: a test that wants these is
// mistaken.
func Contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	if len(parts) == 0 || slices.Contains(parts, "") {
		t.Errorf("the parts %q are in each text", parts)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%.2000s", part, text)
		}
	}
}

// Equal compares two values, and reports the difference as an error.
func Equal(t testing.TB, want, got any, options ...cmp.Option) {
	t.Helper()
	EqualNamed(t, "it differs", want, got, options...)
}

// EqualNamed is Equal for one of several values, which the error names.
func EqualNamed(t testing.TB, name string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Same compares two values that can be compared by ==.
func Same[V comparable](t testing.TB, want, got V) {
	t.Helper()
	SameNamed(t, "it differs", want, got)
}

// SameNamed is Same for one of several values, which the error names.
func SameNamed[V comparable](t testing.TB, name string, want, got V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}

// Golden compares a text with a file, or writes the file.
func Golden(t testing.TB, file, got string, write bool) {
	t.Helper()
	if write {
		NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want := Must(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); if that is meant, run the test with -rewrite or -update:\n%s", file, diff)
	}
}

// Report is a test that keeps its errors and log lines. It has no subtests.
type Report struct {
	testing.TB
	Errors, Logs []string
}

// Run runs a function as a test of its own, and returns what the function reports.
func Run(t *testing.T, f func(t testing.TB)) *Report {
	t.Helper()
	r, done := &Report{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

// Helper does nothing.
func (r *Report) Helper() {}

// Failed reports whether there is an error.
func (r *Report) Failed() bool { return len(r.Errors) > 0 }

// Error keeps an error.
func (r *Report) Error(args ...any) { r.Errors = append(r.Errors, fmt.Sprint(args...)) }

// Errorf keeps an error.
func (r *Report) Errorf(text string, args ...any) {
	r.Errors = append(r.Errors, fmt.Sprintf(text, args...))
}

// Logf keeps a log line.
func (r *Report) Logf(text string, args ...any) { r.Logs = append(r.Logs, fmt.Sprintf(text, args...)) }

// Fatal keeps an error, and ends the function.
func (r *Report) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

// Fatalf keeps an error, and ends the function.
func (r *Report) Fatalf(text string, args ...any) {
	r.Errorf(text, args...)
	runtime.Goexit()
}

// Wants expects errors with all parts, or no error if there are no parts.
func (r *Report) Wants(t testing.TB, parts ...string) {
	t.Helper()
	if r.Failed() != (len(parts) > 0) {
		t.Errorf("the errors are %q, want %q", r.Errors, parts)
	}
	if len(parts) > 0 {
		Contains(t, strings.Join(r.Errors, "\n"), parts...)
	}
}

// WantsLogged expects log lines with all parts.
func (r *Report) WantsLogged(t testing.TB, parts ...string) {
	t.Helper()
	Contains(t, strings.Join(r.Logs, "\n"), parts...)
}
