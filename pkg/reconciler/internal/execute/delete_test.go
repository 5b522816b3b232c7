// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

func TestAnObjectThatChangesAllTheTimeIsDeferredToTheNextPlan(t *testing.T) {
	b := newBench(t)
	d := b.desired(configMap(b.namespace(), "restless"), v1alpha1.UpdatePolicyReplace)
	seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
	sent := 0
	b.beforeEach("DELETE", func(n int) {
		sent = n
		b.otherClient(d, fmt.Sprintf(`data: {status: "%d"}`, n))
	})
	if result := b.run(step(plan.VerbDelete, d, seen)); !execute.IsConflict(result.Err) || sent != 5 {
		t.Errorf("after %d requests: %+v", sent, result)
	}
	if live := b.observe(d); live.Existence != plan.Present || !live.DeletionTimestamp.IsZero() {
		t.Errorf("got %+v", live)
	}
}

// takeovers are changes after which an object is not ours any more, or not
// certainly.
func takeovers(b *bench, d *plan.Desired) map[string]func() {
	patch := func(text string) func() { return func() { b.otherClient(d, text) } }
	return map[string]func(){
		"another owner of ours":       patch(`metadata: {labels: {"` + reconciler + `/owner-id": other}}`),
		"another incarnation of ours": patch(`metadata: {annotations: {"` + reconciler + `/owner": "example.com/Shop/shop/main/later"}}`),
		"another reconciler":          patch(`metadata: {labels: {"bank.example.com/owner-id": theirs}}`),
		"a Helm release":              patch(`metadata: {annotations: {meta.helm.sh/release-name: theirs}}`),
		"no owner":                    patch(`metadata: {labels: {"` + reconciler + `/owner-id": null}, annotations: {"` + reconciler + `/owner": null}}`),
		"another object of the name": func() {
			live := b.live(d)
			if _, _, err := b.target.Objects().Delete(b.t.Context(), b.resource(d), d.Key.Namespace, d.Key.Name, live.GetUID(), "", metav1.DeletePropagationBackground); err != nil {
				b.t.Error(err)
			}
			b.create(configMap(d.Key.Namespace, d.Key.Name))
		},
	}
}

func TestAnObjectThatChangesItsOwnerBetweenTheReadAndTheRequestIsNotTouched(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	methodOf := map[plan.Verb]string{plan.VerbDelete: "DELETE", plan.VerbOrphan: "PATCH"}
	for name := range takeovers(b, nil) {
		for verb, method := range methodOf {
			for _, at := range []int{1, 2} { // before the first request, or between the second look and the second request
				t.Run(fmt.Sprintf("%s, %s %d", name, method, at), func(t *testing.T) {
					d := b.desired(configMap(namespace, unique("map")), v1alpha1.UpdatePolicyReplace)
					seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
					var taken string
					b.beforeEach(method, func(n int) {
						if n < at {
							b.otherClient(d, `data: {status: moved}`)
							return
						}
						takeovers(b, d)[name]()
						taken = b.live(d).GetResourceVersion()
					})
					result := b.run(step(verb, d, seen))
					if !execute.IsConflict(result.Err) {
						t.Errorf("got %+v", result)
					}
					if live := b.live(d); live.GetResourceVersion() != taken {
						t.Errorf("it was touched: %v", live)
					}
				})
			}
		}
	}
}
