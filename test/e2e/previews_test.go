// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/slice"
)

// TestARequestForAPreviewIsAnsweredAfterACrash kills the operator at every request of an answer, before it and, if it
// is a write, also between its commit and the answer of the server. Another operator then answers: once, and
// with the same plan.
func TestARequestForAPreviewIsAnsweredAfterACrash(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]map[string]string{"as it is stored": nil, "edited": {"all": "1", "one": "2"}} {
		t.Run(name, func(t *testing.T) {
			var points []point
			var want string
			t.Run("without a crash", func(t *testing.T) {
				g := newCrasher(0, false)
				want = askThroughACrash(t, g, edit)
				points = pointsOf(g.requests())
			})
			if len(points) < 3 {
				t.Fatalf("an answer took the requests %v", points)
			}
			cases := slice.FromEnvironment(t)
			for i, p := range points {
				if !cases.Has(i) {
					continue
				}
				t.Run(p.String(), func(t *testing.T) {
					g := newCrasher(p.at, p.after)
					if got := askThroughACrash(t, g, edit); got != want {
						t.Errorf("the plan is %s, want %s", got, want)
					}
					if !g.HasCrashed() {
						t.Error("the operator has not crashed")
					}
				})
			}
		})
	}
}

// askThroughACrash asks an operator, and starts another one when it has crashed. It returns what would change.
func askThroughACrash(t *testing.T, g *crasher, edit map[string]string) string {
	t.Helper()
	f := newFixture(t)
	var renderings atomic.Int64
	first := f.startWith(t, configMaps(3, &renderings), g.wrap)
	bundle := f.bundle(t, map[string]string{"all": "1", "one": "1"})
	f.ready(t, bundle)
	revision := bundle.Status.Revision
	question := preview.Question{Component: asUnstructured(t, bundle), FieldOwner: "user"}
	if edit != nil {
		edited := bundle.DeepCopyObject().(*Bundle)
		edited.Spec.Values = texts(edit)
		question.Edited = asUnstructured(t, edited)
	}

	g.arm()
	type result struct {
		answer preview.Answer
		err    error
	}
	answered := make(chan result, 1)
	go func() {
		answer, err := preview.Ask(t.Context(), f.Client, question)
		answered <- result{answer, err}
	}()
	var got *result
	eventually(t, "an answer or a crash", func(context.Context) error {
		select {
		case r := <-answered:
			got = &r
			return nil
		default:
			if g.HasCrashed() {
				return nil
			}
			return errors.New("there is none")
		}
	})
	if g.HasCrashed() {
		first.stop(t)
		f.startWith(t, configMaps(3, &renderings), nil)
	}
	if got == nil {
		r := <-answered // Ask ends by itself
		got = &r
	}
	if got.err != nil {
		t.Fatal(got.err)
	}

	secrets := &corev1.SecretList{}
	if err := f.List(t.Context(), secrets, client.InNamespace(f.namespace), client.HasLabels{reconcilerName + "/" + preview.Label}); err != nil || len(secrets.Items) != 1 {
		t.Errorf("there are %d Secrets of previews, want one: %v", len(secrets.Items), err)
	}
	f.ready(t, bundle)
	if bundle.Status.Revision != revision {
		t.Errorf("the revision is %d, want %d", bundle.Status.Revision, revision)
	}
	var plan component.Plan
	if err := json.Unmarshal(got.answer.Plan, &plan); err != nil {
		t.Fatal(err)
	}
	changes, err := json.Marshal(plan.Changes)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(changes), f.namespace, "$NS")
}

// asUnstructured returns a Bundle as a user has it who does not know its type.
func asUnstructured(t *testing.T, bundle *Bundle) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bundle)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: object}
	gvk, err := apiutil.GVKForObject(bundle, testScheme)
	if err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(gvk)
	return u
}
