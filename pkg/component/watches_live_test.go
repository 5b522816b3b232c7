// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// comesToBeReady waits until the component is ready as it is now.
func (b *bed) comesToBeReady() {
	b.Helper()
	b.comesTo(func() (string, bool) {
		w := b.get()
		state, reason, message := w.Status.GetState()
		return fmt.Sprintf("%s, %s: %s", state, reason, message), w.Status.IsReady() && w.Status.ObservedGeneration == w.Generation
	})
}

// comesToHold waits until a config map has the value.
func (b *bed) comesToHold(name, value string) {
	b.Helper()
	b.comesTo(func() (string, bool) {
		got, exists := b.configMap(name)
		return fmt.Sprintf("%q, exists: %t", got, exists), got == value
	})
}

// sent returns the requests of the operator since the last resetRequests for objects of a type.
func (b *bed) sent(resource string) []string {
	b.Helper()
	var sent []string
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && e.Resource == resource {
			sent = append(sent, fmt.Sprintf("%s %s: %d", e.Verb, e.Name, e.Code))
		}
	}
	return sent
}

func TestRightsInOneNamespaceAreEnough(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	const user = "watching-tenant"
	b.grant(user, append(slices.Clone(ownRights), rule("", "configmaps", "get list watch create update patch delete"))...)
	manager := b.restricted(user)
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		Operator: component.OperatorOptions{OperatorNamespace: &b.namespace, ClusterUID: new("a-name-of-this-cluster")},
	})
	b.check(r.SetupWithManager(manager))
	b.user, b.auditOptions.User = user, user
	b.start(manager)
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1", "b": "1"}})
	b.comesToBeReady()

	// Nothing but its event shows the drift.
	b.resetRequests()
	object := &corev1.ConfigMap{}
	b.check(b.client.Get(t.Context(), b.key("a"), object))
	object.Data["value"] = "theirs"
	b.check(b.client.Update(t.Context(), object, client.FieldOwner("kubectl-edit")))
	b.comesToHold("a", "1")
	repair := b.sent("configmaps")
	if len(repair) > 0 && strings.HasPrefix(repair[0], "watch ") { // it may have started after the component became ready
		repair = repair[1:]
	}
	if diff := cmp.Diff([]string{"get a: 200", "update a: 200"}, repair); diff != "" {
		t.Errorf("the requests of a repair (-want +got):\n%s", diff)
	}
	b.check(b.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("b")}))
	b.comesToHold("b", "1")
	b.comesToBeReady()
}
