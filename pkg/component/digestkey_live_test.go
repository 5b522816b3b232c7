// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

func TestAnotherDigestKeyRecreatesNothing(t *testing.T) {
	options := component.ReconcilerOptions{UpdatePolicy: new(v1alpha1.UpdatePolicyRecreate)}
	b := newBed(t, manifests.GeneratorFunc(configMaps), options)
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}})
	first, before := b.until(v1alpha1.StateReady), b.uids("a", "b")
	options.Operator.OperatorNamespace = &b.namespace
	for i, test := range []struct {
		what string
		lost bool
		b    string // value of config map b
	}{{"a release in another namespace takes over", false, "1"}, {"the key is lost", true, "1"}, {"the key is lost while the spec changes", true, "2"}} {
		if test.lost {
			b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: b.object(operatorName + "-digest-key")}))
		}
		b.update(func(w *widget.Widget) { w.Spec.Values["b"] = test.b })
		b.restartWith(manifests.GeneratorFunc(configMaps), options)
		b.resetRequests()
		w, revision := b.untilGeneration(), first.Status.Revision+int64(i/2)
		if after := b.uids("a", "b"); !slices.Equal(after, before) || w.Status.Revision != revision {
			t.Errorf("%s: revision %d, want %d; uids %v were %v", test.what, w.Status.Revision, revision, after, before)
		}
		if writes := without(b.writes(), "widgets", "digest-key", "-revisions"); !slices.Equal(writes, []string{"update configmaps a", "update configmaps b"}) {
			t.Errorf("%s: writes %v", test.what, writes)
		}
		if w.Status.Inventory.Operator.Key == first.Status.Inventory.Operator.Key {
			t.Errorf("%s: the key is the one of before", test.what)
		}
		for _, item := range w.Status.Inventory.Items {
			if strings.HasPrefix(item.Digest, "?") {
				t.Errorf("%s: the digest of %s %s is %s", test.what, item.Kind, item.Name, item.Digest)
			}
		}
		b.resetRequests()
		b.reconcile()
		if writes := b.writes(); len(writes) > 0 {
			t.Errorf("%s: writes at rest: %v", test.what, writes)
		}
	}
	if value, _ := b.configMap("b"); value != "2" {
		t.Errorf("config map b is %q", value)
	}
	b.setValues(map[string]string{"a": "1", "b": "3"})
	if after := b.uids("a", "b"); after[0] != before[0] || after[1] == before[1] {
		t.Errorf("after a change of a manifest: %v, before %v", after, before)
	}
}
