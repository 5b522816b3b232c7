// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
)

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
