// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
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
)

// random is a template with a random value, one of the time, and one that it looks up.
const random = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  random: '{{ randAlphaNum 20 }}'
  day: '{{ now | date "2006-01-02" }}'
  color: '{{ (lookup "v1" "ConfigMap" "shop" "asked").data.color }}'
`

// process is an operator that renders a widget.
type process struct {
	*testing.T
	*handler[*widget]
	log    *eventLog
	target client.Client
	before bool // the revision was rendered before
}

// processOn starts an operator on servers that hold what was kept, and what is looked up.
func processOn(t *testing.T, local, target client.Client) *process {
	t.Helper()
	h, log, _, _ := fromTemplate(t, random)
	h.renderer.Revisions = revisions.NewStore(revisions.Options{Client: local, Name: "test.corbel.run", FieldOwner: "test", Key: fixedKey("0123").Get})
	return &process{T: t, handler: h, log: log, target: target}
}

// render renders a revision, and returns the data of the ConfigMap to apply.
func (p *process) render(revision int64) (map[string]any, error) {
	p.Helper()
	w := newWidget()
	ctx := manifests.WithClient(manifests.WithComponentDigest(p.Context(), "1"), p.target)
	request := rendering.Request{Component: w, Revision: revisions.Revision{Number: revision, Digest: "of the inputs"}, Rendered: p.before}
	objects, err := p.renderer.Render(ctx, request, &p.remembered(w).rendering)
	if err != nil {
		return nil, err
	}
	return objects[0].(*unstructured.Unstructured).Object["data"].(map[string]any), nil
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

// asked is what the template looks up.
func asked(color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "asked"}, Data: map[string]string{"color": color}}
}

func TestRandomValuesStayTheSameInARevision(t *testing.T) {
	local, target := fake.NewClientBuilder().Build(), fake.NewClientBuilder().WithObjects(asked("red")).Build()
	p := processOn(t, local, target)
	first := p.rendered(1)
	same := func(p *process, want map[string]any) {
		t.Helper()
		for range 3 {
			if diff := cmp.Diff(want, p.rendered(1)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	}
	same(p, first)
	p.now = func() time.Time { return time.Now().Add(1000 * time.Hour) }
	same(p, first)
	same(processOn(t, local, target), first)

	if err := target.Update(t.Context(), asked("blue")); err != nil {
		t.Fatal(err)
	}
	later := map[string]any{"random": first["random"], "day": first["day"], "color": "blue"}
	same(processOn(t, local, target), later)
	same(p, later)
	if second := p.rendered(2); second["random"] == first["random"] {
		t.Errorf("the next revision has the same values: %v", second)
	}
	if p.log.lines != nil {
		t.Errorf("events %q", p.log.lines)
	}
}

func TestOfTwoProcessesTheOneThatKeepsTheValuesFirstDecides(t *testing.T) {
	var overtake func()
	local := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if f := overtake; f != nil {
				overtake = nil
				f()
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	target := fake.NewClientBuilder().WithObjects(asked("red")).Build()
	slow, fast := processOn(t, local, target), processOn(t, local, target)
	var first map[string]any
	overtake = func() { first = fast.rendered(1) }
	if data, err := slow.render(1); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("%v, %v", data, err)
	}
	if diff := cmp.Diff(first, slow.rendered(1)); diff != "" {
		t.Errorf("-first +second:\n%s", diff)
	}
}

func TestLostRandomValuesAreReportedAndMadeAnew(t *testing.T) {
	local, target := fake.NewClientBuilder().Build(), fake.NewClientBuilder().WithObjects(asked("red")).Build()
	first := processOn(t, local, target).rendered(1)
	if err := local.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	p := processOn(t, local, target)
	p.before = true
	if second := p.rendered(1); second["random"] == first["random"] {
		t.Error("the same random value")
	}
	const want = "Warning|RandomValuesLost|Apply|the random values of revision 1 are made anew, because what was kept of them is lost: Secret shop/"
	if len(p.log.lines) != 1 || !strings.HasPrefix(p.log.lines[0], want) || !strings.HasSuffix(p.log.lines[0], ": it does not exist") {
		t.Errorf("events %q", p.log.lines)
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
