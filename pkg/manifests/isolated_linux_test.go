// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

func TestAnIsolatedGeneratorRendersTheSame(t *testing.T) {
	ctx := manifests.Context{
		ReconcilerName: "r", Digest: "d", Revision: 3, Component: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a"}}},
	}.In(t.Context())
	parameters := types.UnstructurableMap{"int": int64(9007199254740993), "float": 1.5, "list": []any{"<", nil, true}, "map": map[string]any{}}
	render := func(g manifests.Generator) []*unstructured.Unstructured {
		return manifeststest.Case{Generator: g, Context: ctx, Namespace: "ns", Name: "app", Parameters: parameters}.Render(t)
	}
	want := render(direct)
	for _, g := range []manifests.Generator{templated, nested} {
		if diff := cmp.Diff(want, render(g)); diff != "" {
			t.Errorf("-direct +isolated:\n%s", diff)
		}
	}
	ctx, origins := renders.WithOrigins(t.Context())
	objects, err := templated.Generate(ctx, "ns", "app", nil)
	if err != nil || origins.Of(objects[0]) != "t/a.yaml" {
		t.Errorf("got the origin %q and the error %v", origins.Of(objects[0]), err)
	}
}

func TestAnIsolatedGeneratorCannotLookUp(t *testing.T) {
	ctx := manifests.Context{Client: fake.NewClientBuilder().Build()}.In(t.Context())
	_, err := templated.Generate(ctx, "ns", "app", types.UnstructurableMap{"lookup": true})
	check.Fails(t, err, `isolated generator "generator": `, "the context holds no client of the target cluster")
}

func TestWhatAnIsolatedGeneratorDoesHarmsOnlyItsProcess(t *testing.T) {
	for _, test := range []struct {
		name      string
		generator manifests.Generator
		do, want  string
	}{
		{"it takes all memory", misbehaving, "eat", `isolated generator "small": it needed more memory than it may have: 128 MiB`},
		{"a template that grows", repeating, "", `isolated generator "repeating": it needed more memory than it may have: 128 MiB`},
		{"a chart that grows", swelling, "", `isolated generator "swelling": it needed more memory than it may have: 128 MiB`},
		{"aliases of a kustomization", multiplying, "", `isolated generator "multiplying": it needed more memory than it may have: 128 MiB`},
		{"it calls itself for ever", misbehaving, "recurse", "(exit status 2): runtime: goroutine stack exceeds|needed more memory"},
		{"it ends its process", misbehaving, "exit", `isolated generator "small": its process ended without an answer (exit status 0)`},
		{"it returns too much", misbehaving, "talk", `isolated generator "small": its answer is longer than it may be: 1048576 bytes`},
		{"it panics in a goroutine", misbehaving, "panic elsewhere", "(exit status 2): a panic in one of its goroutines"},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects, err := manifests.Generate(t.Context(), test.generator, "ns", "app", do(test.do))
			if objects != nil || err == nil || !containsOne(err.Error(), test.want) {
				t.Errorf("got %d objects and the error %v, want %q", len(objects), err, test.want)
			}
		})
	}
}

func TestAnIsolatedGeneratorThatNeverEndsIsKilledWithItsProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	_, err := slow.Generate(t.Context(), "ns", "app", types.UnstructurableMap{"do": "loop", "file": file})
	var late *timeout.Error
	if !errors.As(err, &late) || !strings.Contains(err.Error(), `isolated generator "slow": rendering was not done after`) {
		t.Fatalf("got the error %v", err)
	}
	var pids [2]int
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("it did not start within its time: %v", err)
	}
	check.Must(fmt.Sscan(string(text), &pids[0], &pids[1]))(t)
	for deadline := time.Now().Add(2 * time.Minute); isRunning(pids[0]) || isRunning(pids[1]); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("processes %v are still there", pids)
		}
	}
}

func TestAnIsolatedGeneratorThatUsesTooMuchOfTheProcessorIsKilled(t *testing.T) {
	_, err := working.Generate(t.Context(), "ns", "app", types.UnstructurableMap{"do": "loop", "file": filepath.Join(t.TempDir(), "pids")})
	if late := (*timeout.Error)(nil); !errors.As(err, &late) {
		t.Errorf("got the error %v", err)
	}
}

// isRunning does not count a process that has ended and that its parent has not waited for.
func isRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

func TestAnIsolatedGeneratorEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := misbehaving.Generate(ctx, "ns", "app", types.UnstructurableMap{"do": "loop", "file": filepath.Join(t.TempDir(), "pids")})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got the error %v", err)
	}
	cancel()
	if _, err = misbehaving.Generate(ctx, "ns", "app", do("")); err == nil {
		t.Error("it renders after the end")
	}
}

func TestAnIsolatedGeneratorHasNeitherTheEnvironmentNorTheFilesOfTheOperator(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	open := filepath.Join(t.TempDir(), "open")
	// As a file that a library in C has opened: not closed by exec.
	descriptor := check.Must(syscall.Open(open, syscall.O_CREAT|syscall.O_RDWR, 0o600))(t)
	defer func() { _ = syscall.Close(descriptor) }()
	c := manifeststest.Case{Generator: misbehaving, Parameters: do("look")}
	data := c.Render(t)[0].Object["data"].(map[string]any)
	if data["env"] != "" {
		t.Errorf("its environment is %v", data["env"])
	}
	if files := data["fd"].(string); strings.Contains(files, open) || !strings.Contains(files, "pipe:") {
		t.Errorf("it has the files\n%s", files)
	}
}

func TestErrorsOfAnIsolatedGeneratorComeBack(t *testing.T) {
	if _, err := misbehaving.Generate(t.Context(), "", "", do("print")); err != nil {
		t.Errorf("what it prints gets between: %v", err)
	}
	_, err := misbehaving.Generate(t.Context(), "", "", do("panic"))
	var p *types.PanicError
	if !errors.As(err, &p) || err.Error() != `isolated generator "small": panicked: no way` {
		t.Errorf("got the error %v", err)
	}
	_, err = misbehaving.Generate(t.Context(), "", "", do("fail"))
	var retriable types.RetriableError
	if !errors.As(err, &retriable) || *retriable.RetryAfter() != 7*time.Second || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("got the error %v", err)
	}
}

func TestMistakesInIsolationAreReported(t *testing.T) {
	for _, test := range []struct {
		name string
		g    manifests.Generator
		want string
	}{
		{"a name twice", twice, `isolated generator "small": there is another one of this name`},
		{"too late", manifests.Isolated(serving("a"), manifests.Isolation{Name: "late"}), "made after manifests.RunIsolated was called"},
		{"nil", manifests.Isolated(nil, manifests.Isolation{Name: "nil"}), "the generator is nil"},
		{"no memory", manifests.Isolated(serving("a"), manifests.Isolation{Name: "tiny", MemoryBytes: 1}), "1 bytes of memory are too few"},
		{"no time", manifests.Isolated(serving("a"), manifests.Isolation{Name: "never", Timeout: -1}), "the timeout of -1ns is negative"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.g.Generate(t.Context(), "", "", nil)
			for _, err := range []error{err, renders.Validate(test.g)} {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got the error %v, want %q", err, test.want)
				}
			}
		})
	}
}

const templateText = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}
  namespace: {{ .Namespace }}
  labels: {{ toJson .Component.Labels }}
data:
  values: {{ toJson .Values | quote }}
  revision: {{ .Release.Revision | quote }}
  install: {{ .Release.IsInstall | quote }}
  service: {{ .Release.Service }}
  digest: {{ .Component.Digest }}
  found: {{ if .Values.lookup }}{{ lookup "v1" "Secret" "ns" "x" | toJson | quote }}{{ else }}""{{ end }}
`

func templates(text string, limits manifests.TemplateLimits) manifests.Generator {
	g, err := gotemplate.New(fstest.MapFS{"t/a.yaml": {Data: []byte(text)}}, "t", gotemplate.Options{Timeout: time.Hour, Limits: limits})
	if err != nil {
		panic(err)
	}
	return g
}

func chart(action string) manifests.Generator {
	g, err := helm.New(fstest.MapFS{
		"Chart.yaml": {Data: []byte("apiVersion: v2\nname: a\nversion: 1.0.0\n")}, "templates/a.yaml": {Data: []byte(action)},
	}, ".", helm.Options{Timeout: time.Hour, Limits: boundless})
	if err != nil {
		panic(err)
	}
	return g
}

func kustomization(manifest string) manifests.Generator {
	g, err := kustomize.New(fstest.MapFS{"a.yaml": {Data: []byte(manifest)}}, ".", kustomize.Options{
		Timeout: time.Hour, Limits: kustomize.Limits{TotalBytes: much, Values: much, OutputBytes: much},
	})
	if err != nil {
		panic(err)
	}
	return g
}

// bomb is an object with aliases that expand to 2^levels values.
func bomb(levels int) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\na0: &a0 [xxxxxxxx, xxxxxxxx]\n"
	for i := range levels {
		text += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return text
}

const much = 1 << 40

// boundless are limits that limit nothing.
var boundless = manifests.TemplateLimits{Depth: much, OutputBytes: much, StringBytes: much, Items: much, WorkBytes: much}

var (
	small       = manifests.Isolation{Name: "small", Timeout: time.Minute, MemoryBytes: 128 << 20, OutputBytes: 1 << 20}
	misbehaving = manifests.Isolated(generator(misbehave), small)
	slow        = manifests.Isolated(generator(misbehave), manifests.Isolation{Name: "slow", Timeout: 3 * time.Second})

	working = manifests.Isolated(generator(misbehave), manifests.Isolation{Name: "working", ProcessorTime: time.Second})

	direct    = templates(templateText, manifests.TemplateLimits{})
	templated = manifests.Isolated(direct, manifests.Isolation{})
	nested    = manifests.Isolated(manifests.Join(templated), manifests.Isolation{Name: "nested"})

	repeating = manifests.Isolated(templates(`{{ $s := "x" }}{{ range until 100 }}{{ $s = print $s $s }}{{ end }}`, boundless),
		manifests.Isolation{Name: "repeating", Timeout: time.Minute, MemoryBytes: 128 << 20})

	// What grows beyond their own limits, too, is held by the process.
	swelling = manifests.Isolated(chart(`{{ $s := "x" }}{{ range until 100 }}{{ $s = print $s $s }}{{ end }}`),
		manifests.Isolation{Name: "swelling", Timeout: time.Minute, MemoryBytes: 128 << 20})
	multiplying = manifests.Isolated(kustomization(bomb(24)),
		manifests.Isolation{Name: "multiplying", Timeout: time.Minute, MemoryBytes: 128 << 20})

	twice = manifests.Isolated(serving("a"), manifests.Isolation{Name: "small"})
)

// misbehave does what the parameters say, in the other process.
func misbehave(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
	file, _ := parameters.ToUnstructured()["file"].(string)
	data := map[string]string{}
	switch parameters.ToUnstructured()["do"] {
	case "eat":
		var kept [][]byte
		for {
			kept = append(kept, make([]byte, 1<<20))
			for i := range kept[len(kept)-1] {
				kept[len(kept)-1][i] = 1
			}
		}
	case "loop":
		command := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := command.Start(); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, fmt.Appendf(nil, "%d %d", os.Getpid(), command.Process.Pid), 0o600); err != nil {
			return nil, err
		}
		for n := 0; ; n++ {
			data["n"] = ""
		}
	case "recurse":
		var recurse func(n int) int
		recurse = func(n int) int { return recurse(n+1) + 1 }
		data["n"] = fmt.Sprint(recurse(0))
	case "exit":
		os.Exit(0)
	case "talk":
		data["long"] = strings.Repeat("x", 2<<20)
	case "print":
		fmt.Println(strings.Repeat("garbage", 100000))
		fmt.Fprintln(os.Stderr, strings.Repeat("garbage", 100000))
	case "panic":
		panic("no way")
	case "panic elsewhere":
		go func() { panic("secret") }()
		select {}
	case "fail":
		return nil, types.NewRetriableError(errors.New("not yet"), new(7*time.Second))
	case "look":
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			target, _ := os.Readlink("/proc/self/fd/" + entry.Name())
			data["fd"] += target + "\n"
		}
		environ, err := os.ReadFile("/proc/self/environ")
		data["env"] = strings.Join(os.Environ(), "\n") + string(environ)
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: data}}, err
	}
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: data}}, nil
}

func do(what string) types.Unstructurable { return types.UnstructurableMap{"do": what} }
