// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// random is a template with a random value, one of the time, and one that it looks up.
const random = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  random: '{{ randAlphaNum 20 }}'
  time: '{{ now | unixEpoch }}'
  ago: '{{ ago 1000000000 }}'
  color: '{{ (lookup "v1" "ConfigMap" "shop" "asked").data.color }}'
`

// process is an operator that renders a widget.
type process struct {
	*testing.T
	*handler
	log    *eventLog
	target client.Client
	digest string // of the component
	before bool   // the revision was rendered before
}

// processOn starts an operator on servers that hold what was kept, and what is looked up. Each
// has another time.
func processOn(t *testing.T, local, target client.Client) *process {
	t.Helper()
	h, log, _, _ := fromTemplate(t, random)
	h.revisions.Renderer.Revisions = historyIn(local)
	processes++
	later := time.Duration(processes) * 1000 * time.Hour
	h.now = func() time.Time { return time.Now().Add(later) }
	return &process{T: t, handler: h, log: log, target: target, digest: "1"}
}

var processes int

// render renders a revision, and returns the data of the ConfigMap to apply.
func (p *process) render(revision int64) (map[string]any, error) {
	p.Helper()
	w := newWidget()
	ctx := manifests.Context{Digest: p.digest, Client: p.target}.In(p.Context())
	request := rendering.Request{Component: w, Revision: revisions.Revision{Number: revision, Digest: fmt.Sprint("of revision ", revision)}, Rendered: p.before}
	rendered, err := p.revisions.Renderer.Render(ctx, request, &p.remembered(w).rendering)
	if err != nil {
		return nil, err
	}
	return rendered.Objects[0].(*unstructured.Unstructured).Object["data"].(map[string]any), nil
}

// rendered is render where nothing goes wrong.
func (p *process) rendered(revision int64) map[string]any {
	p.Helper()
	data, err := p.render(revision)
	if err != nil {
		p.Fatal(err)
	}
	return data
}

// same expects the data in each rendering of the revision.
func (p *process) same(want map[string]any, revision int64) {
	p.Helper()
	for range 3 {
		if diff := cmp.Diff(want, p.rendered(revision)); diff != "" {
			p.Errorf("-want +got:\n%s", diff)
		}
	}
}

// asked is what the template looks up.
func asked(color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "asked"}, Data: map[string]string{"color": color}}
}

func TestRandomValuesStayTheSameInARevision(t *testing.T) {
	local, target := fake.NewClientBuilder().Build(), fake.NewClientBuilder().WithObjects(asked("red")).Build()
	p := processOn(t, local, target)
	first := p.rendered(1)
	p.same(first, 1)
	p.digest = "2" // by an annotation, for example
	p.same(first, 1)
	processOn(t, local, target).same(first, 1)

	check(t, target.Update(t.Context(), asked("blue")))
	later := maps.Clone(first)
	later["color"] = "blue"
	processOn(t, local, target).same(later, 1)
	p.same(later, 1)
	second := p.rendered(2)
	if second["random"] == first["random"] {
		t.Errorf("the next revision has the same values: %v", second)
	}
	// The status may still have the revision before, and the spec may be changed back to it.
	next := processOn(t, local, target)
	next.same(later, 1)
	next.same(second, 2)
	if p.log.lines != nil || next.log.lines != nil {
		t.Errorf("events %q, %q", p.log.lines, next.log.lines)
	}
}

// drawn is a generator with random values, which it takes from a list.
func drawn(values ...string) manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
		manifests.NoteRandom(ctx)
		value := values[0]
		values = values[1:]
		if value == "" {
			return nil, errors.New("broken")
		}
		return []client.Object{&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"value": value},
		}}}, nil
	})
}

func TestARandomValueThatIsTheSameByChanceIsFound(t *testing.T) {
	local := fake.NewClientBuilder().Build()
	p := processOn(t, local, local)
	p.revisions.Renderer.Generator = drawn("3", "3", "7", "5", "5", "5", "8", "2", "9")
	want := map[string]any{"value": "3"}
	p.same(want, 1) // 3, 3, 7; 5; 5
	p.digest = "2"
	p.same(want, 1) // 5, 8; 2; 9
	p = processOn(t, local, local)
	p.digest = "3"
	p.revisions.Renderer.Generator = drawn("4", "4", "6", "1", "1")
	p.same(want, 1) // 4, 4, 6; 1; 1
}

func TestARenderingThatFailsLosesNoRandomValue(t *testing.T) {
	local := fake.NewClientBuilder().Build()
	p := processOn(t, local, local)
	p.revisions.Renderer.Revisions = nil
	p.revisions.Renderer.Generator = drawn("3", "4", "5", "6", "", "7", "8", "9", "10")
	want := p.rendered(1)
	p.digest = "2"
	if data, err := p.render(1); err == nil {
		t.Errorf("%v, although the second rendering fails", data)
	}
	p.same(want, 1)
}

func TestOfTwoProcessesTheOneThatKeepsTheValuesFirstDecides(t *testing.T) {
	var overtake func()
	interrupt := func() {
		if f := overtake; f != nil {
			overtake = nil
			f()
		}
	}
	local := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			interrupt()
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			interrupt()
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	target := fake.NewClientBuilder().WithObjects(asked("red")).Build()
	slow, fast := processOn(t, local, target), processOn(t, local, target)
	for i, refused := range []func(error) bool{apierrors.IsAlreadyExists, apierrors.IsConflict} {
		revision := int64(i + 1)
		var first map[string]any
		overtake = func() { first = fast.rendered(revision) }
		if data, err := slow.render(revision); !refused(err) {
			t.Fatalf("revision %d: %v, %v", revision, data, err)
		}
		slow.same(first, revision)
	}
}

func TestLostRandomValuesAreReportedAndMadeAnew(t *testing.T) {
	remove := func(ctx context.Context, local client.Client) error {
		return local.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("shop"))
	}
	change := func(ctx context.Context, local client.Client) error {
		list := &corev1.SecretList{}
		if err := local.List(ctx, list); err != nil {
			return err
		}
		list.Items[0].Data["r1"][30] ^= 1
		return local.Update(ctx, &list.Items[0])
	}
	tests := []struct {
		name   string
		lose   func(ctx context.Context, local client.Client) error
		before bool
		want   string // empty: it is not reported
	}{
		{name: "the Secret is gone", before: true, want: ": it does not exist", lose: remove},
		{name: "the first rendering of a revision", lose: remove},
		{name: "it was changed", before: true, want: ": it does not open: it was changed", lose: change},
		{name: "it is that of another revision with the same number, which has never started", lose: change},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			local, target := fake.NewClientBuilder().Build(), fake.NewClientBuilder().WithObjects(asked("red")).Build()
			first := processOn(t, local, target).rendered(1)
			check(t, test.lose(t.Context(), local))
			p := processOn(t, local, target)
			p.before = test.before
			second := p.rendered(1)
			if second["random"] == first["random"] {
				t.Error("the same random value")
			}
			p.same(second, 1)
			const start = "Warning|RandomValuesLost|Apply|the random values of revision 1 that no Secret of the component has are made anew, because what was kept of them is lost: Secret shop/"
			switch {
			case test.want == "" && p.log.lines != nil,
				test.want != "" && (len(p.log.lines) != 1 || !strings.HasPrefix(p.log.lines[0], start) || !strings.Contains(p.log.lines[0], test.want)):
				t.Errorf("events %q, want one with %q", p.log.lines, test.want)
			}
		})
	}
}

func TestARandomValueThatIsNotUsedIsNotMissed(t *testing.T) {
	local := fake.NewClientBuilder().Build()
	for range 2 {
		p := processOn(t, local, local)
		p.before = true
		p.revisions.Renderer.Generator = drawn("found", "found", "found", "found", "found")
		p.rendered(1)
		if p.log.lines != nil {
			t.Errorf("events %q", p.log.lines)
		}
	}
}

func TestWithoutRightsOnSecretsRandomValuesAreKeptInMemory(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
	for _, verb := range []string{"get", "create"} {
		t.Run(verb, func(t *testing.T) {
			local := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if verb == "get" {
						return forbidden
					}
					return c.Get(ctx, key, obj, opts...)
				},
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden },
			})
			p := processOn(t, local, fake.NewClientBuilder().WithObjects(asked("red")).Build())
			if diff := cmp.Diff(p.rendered(1), p.rendered(1)); diff != "" {
				t.Errorf("-first +second:\n%s", diff)
			}
			notices := p.remembered(newWidget()).rendering.Notices()
			if len(notices) != 1 || !strings.Contains(notices[0], "are made anew when the operator restarts, because they cannot be kept") {
				t.Errorf("notices %q", notices)
			}
		})
	}
}

func TestAHistoryThatCannotBeWrittenFailsAComponentOnce(t *testing.T) {
	var failing error
	local := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if failing != nil {
				return failing
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	p := processOn(t, local, local)
	p.revisions.Renderer.Generator = manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		return oneConfigMap("1"), nil
	})
	w := newWidget()
	ctx := manifests.Context{Digest: "1"}.In(t.Context())
	request := rendering.Request{Component: w, Revision: revisions.Revision{Number: 1, Digest: "a"}, Retention: revisions.Retention{Limit: 10}}
	last := &p.remembered(w).rendering
	keep := func() (string, error) {
		rendered, err := p.revisions.Renderer.Render(ctx, request, last)
		check(t, err)
		err = p.revisions.Renderer.Keep(ctx, request, &rendered, last)
		return rendered.Stored, err
	}
	for _, test := range []struct {
		name  string
		err   error
		fails bool
		kept  bool
	}{
		{"a server that is busy", apierrors.NewInternalError(errors.New("busy")), true, false},
		{"a server that is still busy", apierrors.NewInternalError(errors.New("busy")), false, false},
		{"a missing right", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "main", errors.New("no")), false, false},
		{"a server that answers", nil, false, true},
	} {
		failing = test.err
		if stored, err := keep(); (err != nil) != test.fails || (stored != "") != test.kept {
			t.Errorf("%s: kept as %q, %v", test.name, stored, err)
		}
	}
}
