// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/manifests/krm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

// sh is a function written in sh.
func sh(script string) krm.Function {
	return krm.Function{Path: "/bin/sh", Args: []string{"-c", script}}
}

const empty = "printf 'apiVersion: config.kubernetes.io/v1\\nkind: ResourceList\\n'\n"

func generate(ctx context.Context, f krm.Function, values map[string]any) ([]client.Object, error) {
	g, err := krm.NewGenerator(f)
	if err != nil {
		return nil, err
	}
	return manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap(values))
}

func TestAFunctionSeesNoEnvironment(t *testing.T) {
	t.Setenv("CORBEL_SECRET", "from the environment")
	file := filepath.Join(t.TempDir(), "environment")
	check.Must(generate(t.Context(), sh("/usr/bin/env > "+file+"\n"+empty), nil))(t)
	data, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(data), "CORBEL") || strings.Contains(string(data), "HOME=") {
		t.Errorf("got %q, %v", data, err)
	}
	function := sh("echo \"$GIVEN\" > " + file + "\n" + empty)
	function.Environment = []string{"GIVEN=yes"}
	check.Must(generate(t.Context(), function, nil))(t)
	if data, err := os.ReadFile(file); err != nil || string(data) != "yes\n" {
		t.Errorf("got %q, %v", data, err)
	}
}

// The function starts another process, and both ignore what can be ignored.
func TestAFunctionThatTakesTooLongIsEndedWithItsProcesses(t *testing.T) {
	for name, withTimeout := range map[string]func(*krm.Function) context.Context{
		"its own timeout":     func(f *krm.Function) context.Context { f.Timeout = 300 * time.Millisecond; return t.Context() },
		"that of the context": func(*krm.Function) context.Context { return deadline(t, 300*time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			pid := filepath.Join(t.TempDir(), "pid")
			function := sh("trap '' TERM INT HUP\nsleep 600 & echo $! > " + pid + "\nwait")
			_, err := generate(withTimeout(&function), function, nil)
			var late *timeout.Error
			if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "function /bin/sh") {
				t.Fatalf("got the error %v", err)
			}
			data := check.Must(os.ReadFile(pid))(t)
			child := check.Must(strconv.Atoi(strings.TrimSpace(string(data))))(t)
			waitUntilGone(t, child)
		})
	}
}

func deadline(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// waitUntilGone waits until the process has ended; the process that adopted it may not
// have noticed its end yet.
func waitUntilGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			if errors.Is(err, os.ErrNotExist) || err == nil || errors.Is(err, syscall.ESRCH) {
				return
			}
		}
	}
	t.Errorf("process %d is still there", pid)
}

func TestAFunctionThatWritesTooMuchIsEnded(t *testing.T) {
	function := sh("trap '' PIPE\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done 2>/dev/null")
	function.OutputBytes = 10_000
	_, err := generate(t.Context(), function, nil)
	if err == nil || err.Error() != "function /bin/sh: it wrote more than 10000 bytes" {
		t.Errorf("got the error %v", err)
	}
}

func TestAFunctionThatFailsSaysWhy(t *testing.T) {
	results := "printf 'apiVersion: config.kubernetes.io/v1\\nkind: ResourceList\\nresults:\\n- {message: no size, severity: error, resourceRef: {kind: Shop, name: a}, field: {path: spec.size}}\\n'\n"
	for _, test := range []struct{ name, script, want string }{
		{"an exit code", "echo 'no such\nsize' >&2; exit 3", "function /bin/sh: it ended with exit code 3: no such size"},
		{"an exit code with results", results + "exit 1", "function /bin/sh: it ended with exit code 1: error: Shop a: spec.size: no size"},
		{"much on the standard error", "i=0; while [ $i -lt 2000 ]; do echo $i >&2; i=$((i+1)); done; exit 1", "1999"},
		{"a signal", "kill -9 $$", "function /bin/sh: it was ended by a signal"},
		{"an error without exit code", results, "function /bin/sh: error: Shop a: spec.size: no size"},
		{"no output", "exit 0", "function /bin/sh: its output: it is empty, want a ResourceList"},
		{"no YAML", "echo 'a: ['", "function /bin/sh: its output: line 1"},
		{"another kind", "echo 'kind: List'", "want an object of kind ResourceList"},
		{"another version", "printf 'apiVersion: v9\\nkind: ResourceList'", "apiVersion v9, want config.kubernetes.io/v1"},
		{"items that are no list", empty + "echo 'items: 5'", "items: want a list"},
		{"items that are no objects", empty + "echo 'items: [5, {kind: A}]'", "items[0]: document 1, line 1: want an object, got a number\nitems[1]: document 1, line 1"},
		{"an unknown severity", empty + "echo 'results: [{message: x, severity: bad}]'", `result 1 of 1: severity "bad", want error, warning or info`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := generate(t.Context(), sh(test.script), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2048 {
				t.Errorf("got the error %v, want %q", err, test.want)
			}
		})
	}
}

func TestOtherResultsAreHandedOver(t *testing.T) {
	var seen []string
	function := sh(empty + "printf 'results:\\n- {message: old, severity: warning}\\n- {message: made, severity: info, tags: {a: b}}\\n'")
	function.Observe = func(namespace, name string, results []string) {
		for _, r := range results {
			seen = append(seen, namespace+"/"+name+" "+r)
		}
	}
	check.Must(generate(t.Context(), function, nil))(t)
	check.Equal(t, []string{"ns/app warning: old", "ns/app info: made"}, seen)
}

func TestMistakesInAFunctionAreReportedAtOnceAndAgain(t *testing.T) {
	for want, function := range map[string]krm.Function{
		"the path must be absolute": {Path: "sh"},
		"no such file":              {Path: "/does/not/exist"},
		"it is no program":          {Path: "/etc/passwd"},
		"want KEY=value":            {Path: "/bin/sh", Environment: []string{"X"}},
	} {
		g, err := krm.NewGenerator(function)
		_, again := manifests.Generate(t.Context(), g, "", "", nil)
		if err == nil || !strings.Contains(err.Error(), want) || again == nil || again.Error() != err.Error() {
			t.Errorf("got the errors %v and %v, want %q", err, again, want)
		}
	}
}
