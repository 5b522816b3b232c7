// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// report is a test that is tested: it keeps what it would have said.
type report struct {
	testing.TB
	errors, logs []string
	skipped      string
}

func (r *report) Helper()           {}
func (r *report) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *report) Errorf(text string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(text, args...))
}
func (r *report) Logf(text string, args ...any) { r.logs = append(r.logs, fmt.Sprintf(text, args...)) }

func (r *report) Fatalf(text string, args ...any) {
	r.Errorf(text, args...)
	runtime.Goexit()
}

func (r *report) Skipf(text string, args ...any) {
	r.skipped = fmt.Sprintf(text, args...)
	runtime.Goexit()
}

// check runs a check as a test of its own and returns what it reports.
func check(t *testing.T, f func(t testing.TB)) *report {
	t.Helper()
	r, done := &report{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

// wants compares the only error of a check, or that there is none.
func (r *report) wants(t *testing.T, parts ...string) {
	t.Helper()
	all := strings.Join(r.errors, "\n")
	if len(parts) == 0 && all != "" {
		t.Errorf("it reports %q", all)
	}
	for _, part := range parts {
		if !strings.Contains(all, part) {
			t.Errorf("it reports %q, want %q", all, part)
		}
	}
}

// generate makes a function of the parameters a generator.
func generate(f func(parameters map[string]any) []client.Object) manifests.Generator {
	return manifests.GeneratorFunc(func(_ context.Context, _, _ string, p types.Unstructurable) ([]client.Object, error) {
		return f(p.ToUnstructured()), nil
	})
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}
