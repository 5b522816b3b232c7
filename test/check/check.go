// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package check runs functions that report their findings to a test, and returns the findings.
package check

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

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
	wants(t, r.Errors, parts)
}

// WantsLogged expects log lines with all parts.
func (r *Report) WantsLogged(t testing.TB, parts ...string) {
	t.Helper()
	wants(t, r.Logs, parts)
}

func wants(t testing.TB, lines, parts []string) {
	t.Helper()
	all := strings.Join(lines, "\n")
	for _, part := range parts {
		if !strings.Contains(all, part) {
			t.Errorf("the test reports %q, want %q", all, part)
		}
	}
}
