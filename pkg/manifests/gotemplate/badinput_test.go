// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/trap"
)

// badTemplate is one action that must end as an error.
type badTemplate struct {
	name, action string
	want         []string
	options      gotemplate.Options
}

func badTemplates() []badTemplate {
	limited := gotemplate.Options{Timeout: time.Minute}
	brief := gotemplate.Options{Timeout: 200 * time.Millisecond}
	return []badTemplate{
		{"T01 an environment variable", `{{ env "` + trap.Variable + `" }}`, []string{"t/a.yaml:7:7:", "env is not available: templates cannot read the environment"}, limited},
		{"T01 an environment variable in a text", `{{ expandenv "$` + trap.Variable + `" }}`, []string{"t/a.yaml:7:7:", "expandenv is not available"}, limited},
		{"T01 an environment variable in a value", `{{ tpl .Values.env . }}`, []string{"t/a.yaml:7:7", "env is not available"}, limited},
		{"T03 a host name", `{{ getHostByName "x.example.com" }}`, []string{"t/a.yaml:7:7:", "getHostByName is not available: templates cannot use the network"}, limited},
		{"T13 loops in loops", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, []string{"rendering was not done after|functions and loops worked on more than"}, brief},
		{"T13 loops in loops over one list", `{{ $l := until 100000 }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}`, []string{"rendering was not done after"}, brief},
		{"T15 many keys", `{{ range until 1000 }}{{ $_ := genPrivateKey "rsa" }}{{ end }}`, []string{"rendering was not done after|functions and loops worked on more than"}, brief},
		{"T15 many slow hashes", `{{ range until 100000 }}{{ $_ := bcrypt "x" }}{{ end }}`, []string{"rendering was not done after|functions and loops worked on more than"}, brief},
		{"T15 many derived passwords", `{{ range until 100000 }}{{ $_ := derivePassword 1 "long" "x" "y" "z" }}{{ end }}`, []string{"rendering was not done after|functions and loops worked on more than"}, brief},
		{"T17 a lookup that is forbidden", `{{ lookup "v1" "Secret" "kube-system" "x" }}`, []string{"t/a.yaml:7:7:", "Secret kube-system/x", "forbidden"}, limited},
		{"T19 a lookup of no version", `{{ lookup "a/b/c" "Secret" "ns" "x" }}`, []string{"t/a.yaml:7:7:", `apiVersion "a/b/c", kind "Secret": both are needed`}, limited},
		{"T19 a lookup of a list without end", `{{ lookup "v1" "ConfigMap" "ns" "" }}`, []string{"t/a.yaml:7:7:", "there are more than 10000 objects"}, limited},
		{"T21 a value that is required", `{{ required "set image" .Values.image }}`, []string{"t/a.yaml:7:7:", "set image"}, limited},
		{"T23 an action without an end", `{{ .Values.x `, []string{"t/a.yaml:8: unclosed action started at t/a.yaml:7"}, limited},
		{"T23 a block without an end", `{{ if .Values.x }}`, []string{"t/a.yaml:8: unexpected EOF"}, limited},
		{"T23 an unknown function", `{{ nope }}`, []string{`t/a.yaml:7: function "nope" not defined`}, limited},
		{"T23 a wrong argument", `{{ upper 5 }}`, []string{"t/a.yaml:7:13:", "expected string; found 5"}, limited},
		{"T23 a template that is missing", `{{ include "nowhere" . }}`, []string{`there is no template "nowhere"`}, limited},
		{"T23 a field of nothing", `{{ .Values.a.b }}`, []string{"nil pointer evaluating interface {}.b"}, limited},
		{"T23 a number that is not whole", `{{ until 1.5 }}`, []string{"want a whole number, got 1.5"}, limited},
		{"T23 a failure on purpose", `{{ fail "on purpose" }}`, []string{"error calling fail: on purpose"}, limited},
		{"T25 equal delimiters", `x`, []string{`delimiter "[[": left and right must differ`}, gotemplate.Options{LeftDelimiter: "[[", RightDelimiter: "[["}},
		{"T25 delimiters with blanks", `x`, []string{`delimiter "[ [": it must not contain blanks`}, gotemplate.Options{LeftDelimiter: "[ [", RightDelimiter: "]]"}},
		{"T27 many documents", "x\n{{ range until 100000 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ repeat 400 \"x\" }}\n{{ end }}", []string{"t/a.yaml: the text would be longer than 16777216 bytes"}, limited},
	}
}

// targets returns clients of a target where reading a Secret is forbidden and lists
// have no end, and of a local cluster that must not be asked.
func targets(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	target := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no role"))
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(options)
			items := make([]any, o.Limit)
			for i := range items {
				items[i] = map[string]any{"kind": "ConfigMap"}
			}
			list.(interface{ SetUnstructuredContent(map[string]any) }).SetUnstructuredContent(map[string]any{"items": items})
			list.SetContinue("more")
			return nil
		},
	})
	local := interceptor.NewClient(fake.NewClientBuilder().WithObjects(&corev1.Secret{}).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			t.Error("the user of the operator was used")
			return errors.New("no")
		},
	})
	return manifests.Context{Client: target, LocalClient: local}.In(ctx)
}

func TestBadTemplatesAreOneClearErrorAndReachNothing(t *testing.T) {
	traps := trap.Set(t)
	ctx := targets(t, t.Context())
	values := map[string]any{"self": "{{ tpl .Values.self . }}", "env": `{{ env "` + trap.Variable + `" }}`}
	for _, test := range badTemplates() {
		t.Run(test.name, func(t *testing.T) {
			text, err := evaluate(ctx, test.action, values, test.options)
			if err == nil {
				t.Fatalf("got no error but %.200q", text)
			}
			for _, want := range test.want {
				if !containsOne(err.Error(), want) {
					t.Errorf("got the error %v, want it to contain %q", err, want)
				}
			}
			if len(err.Error()) > 1024 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			traps.Check(t, text, err.Error())
		})
	}
}

// containsOne is for limits of which now one, now the other is reached first.
func containsOne(text, alternatives string) bool {
	for alternative := range strings.SplitSeq(alternatives, "|") {
		if strings.Contains(text, alternative) {
			return true
		}
	}
	return false
}

func TestValuesThatAreHardToKeep(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"T33 a number of 54 bits":     {int64(9007199254740993), "9007199254740993"},
		"T33 a large number":          {1e300, "1e+300"},
		"T33 a text like an octal":    {"0777", "0777"},
		"T33 a text like a truth":     {"yes", "yes"},
		"T33 a text like a time":      {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
		"T33 a text that is too much": {"1e400", "1e400"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, action := range []string{`{{ .Values.v }}`, `{{ (dict "v" .Values.v | toYaml | fromYaml).v }}`} {
				got, err := evaluate(t.Context(), action, map[string]any{"v": test.value}, gotemplate.Options{})
				if err != nil || got != test.want {
					t.Errorf("%s: got %q and the error %v, want %q", action, got, err, test.want)
				}
			}
		})
	}
}

func TestNumbersThatAreNoneAreRefused(t *testing.T) {
	for name, number := range map[string]any{"T33 no number": math.NaN(), "T33 no finite number": math.Inf(1), "T33 a short one": float32(math.Inf(-1))} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(t.Context(), "x", map[string]any{"a": map[string]any{"b": []any{number}}}, gotemplate.Options{})
			wantError(t, err, "parameters: a: b: it is no finite number")
		})
	}
}

// With the race detector it also shows that renderings share nothing they change.
func TestRenderingsAtTheSameTimeDoNotSeeEachOther(t *testing.T) {
	const name = "T39 changed values"
	g, err := gotemplate.New(folder(map[string]string{
		"a.yaml": manifest(`{{ $_ := set .Values "n" (print .Values.n .Name) }}{{ $_ := set .Values.m "k" .Name }}{{ toJson .Values }}`),
	}), ".", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	values := types.UnstructurableMap{"n": "n", "m": map[string]any{"k": "v"}}
	t.Run(name, func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				app := fmt.Sprint("app", i)
				objects, err := manifests.Generate(t.Context(), g, "ns", app, values)
				if err != nil {
					t.Error(err)
					return
				}
				want := fmt.Sprintf(`{"m":{"k":%q},"n":"n%s"}`, app, app)
				if got := fmt.Sprint(contentOf(objects[0])["v"]); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
		group.Wait()
	})
}
