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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
)

// TestARequestForAPreviewIsAnsweredAfterACrash kills the operator at every request of an answer, before it and, if it
// is a write, also between its commit and the answer of the server. Another operator then answers: once, and
// with the same plan.
func TestARequestForAPreviewIsAnsweredAfterACrash(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]map[string]string{"as it is stored": nil, "edited": {"all": "1", "one": "2"}} {
		t.Run(name, func(t *testing.T) {
			var want string
			crashAtEachRequest(t, func(t *testing.T, g *crasher) {
				switch got := askThroughACrash(t, g, edit); {
				case g.At == 0:
					want = got
				case got != want:
					t.Errorf("the plan is %s, want %s", got, want)
				case !g.HasCrashed():
					t.Error("the operator has not crashed")
				}
			})
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
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(widget.GroupVersion.WithKind("Widget"))
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(bundle), stored); err != nil {
		t.Fatal(err)
	}
	question := preview.Question{Component: stored, FieldOwner: "user"}
	if edit != nil {
		question.Edited = stored.DeepCopy()
		if err := unstructured.SetNestedStringMap(question.Edited.Object, edit, "spec", "values"); err != nil {
			t.Fatal(err)
		}
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
	eventually(t, "an answer or a crash", func(context.Context) error {
		if len(answered) == 0 && !g.HasCrashed() {
			return errors.New("there is none")
		}
		return nil
	})
	if g.HasCrashed() {
		first.stop(t)
		f.startWith(t, configMaps(3, &renderings), nil)
	}
	got := <-answered // Ask ends by itself
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
