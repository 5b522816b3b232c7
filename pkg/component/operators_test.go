// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// newRelease returns an operator with a digest key of its own.
func newRelease(t *testing.T, namespace, key string) (*handler, *fakeEngine) {
	t.Helper()
	engine := &fakeEngine{outcome: reconciler.Outcome{Inventory: someInventory}}
	h, _ := testHandler(t, engine)
	h.digestKey, h.settings.operatorNamespace = fixedKey(key).Get, namespace
	h.revisions.DigestKey = h.digestKey
	h.records = newRecords(h.steps, 0)
	return h, engine
}

func TestAnotherKeyIsNoNewRevision(t *testing.T) {
	obj := newWidget()
	for _, step := range []struct {
		what, namespace, key string
		size                 int
		applied              int64
		want                 int64
	}{
		{"it is installed", "red", "key of red", 0, 0, 1},
		{"another operator takes over during the installation", "blue", "key of blue", 0, 0, 1},
		{"the key is lost", "blue", "new key of blue", 0, 1, 1},
		{"the spec changes as well", "blue", "key after that", 1, 1, 2},
		{"the next one takes over before it is applied", "red", "key of red", 1, 1, 2},
		{"the spec changes while the one after that takes over", "blue", "key of blue", 2, 1, 3},
	} {
		obj.Status.ObservedGeneration, obj.Status.AppliedGeneration = obj.Generation, step.applied
		if obj.Spec.Size != step.size {
			obj.Generation, obj.Spec.Size = obj.Generation+1, step.size
		}
		h, _ := newRelease(t, step.namespace, step.key)
		if _, err := h.applier.createOrUpdate(t.Context(), obj, noCommit); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if got := obj.GetStatus().Revision; got != step.want {
			t.Errorf("%s: revision %d, want %d", step.what, got, step.want)
		}
	}
}

// What the engine gets and what is saved with the name of our key says nothing that was
// hashed with another one.
func TestWhatWasHashedWithAnotherKeyIsLeftOut(t *testing.T) {
	item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "u", Digest: "manifest@revision", ObservedHash: "seen", AppliedHash: "accepted"}
	left := item
	left.Digest, left.ObservedHash, left.AppliedHash = "?@revision", "", ""
	obj := newWidget()
	obj.Status.Inventory = v1alpha1.Inventory{Format: v1alpha1.InventoryFormat, Items: []v1alpha1.InventoryItem{item}}
	for _, step := range []struct {
		what, key string
		want      v1alpha1.InventoryItem
	}{
		{"no key is named", "old key", item},
		{"the same key", "old key", item},
		{"another key", "new key", left},
		{"the same key after that", "new key", left},
	} {
		h, engine := newRelease(t, "red", step.key)
		engine.echo = true // as if the manifests were invalid
		if _, err := h.applier.createOrUpdate(t.Context(), obj, noCommit); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		for where, got := range map[string][]v1alpha1.InventoryItem{"request": engine.applied[0].Inventory.Items, "status": obj.Status.Inventory.Items} {
			if diff := cmp.Diff([]v1alpha1.InventoryItem{step.want}, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", step.what, where, diff)
			}
		}
		if me := (digest.Hasher{Key: []byte(step.key)}).ID(); obj.Status.Inventory.Operator.Key != me {
			t.Errorf("%s: the record names the key %s", step.what, obj.Status.Inventory.Operator.Key)
		}
	}
}

func TestWithoutADigestKeyNothingIsApplied(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	h.digestKey = targets.NewDigestKey(fake.NewFakeClient(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "shop.example.com-digest-key"},
	}), client.ObjectKey{Namespace: "operators", Name: "shop.example.com-digest-key"}).Get
	if _, err := h.applier.createOrUpdate(t.Context(), newWidget(), noCommit); err == nil || len(engine.applied) > 0 {
		t.Errorf("error %v", err)
	}
	// But a component that has nothing to lose can go.
	if _, err := h.deletion.delete(t.Context(), deletedWidget(someInventory), noCommit); err == nil {
		t.Error("no error in deletion")
	}
	if _, err := h.deletion.delete(t.Context(), deleted(newWidget()), noCommit); err != nil {
		t.Errorf("in the deletion of an empty component: %v", err)
	}
}

func TestAComponentBelongsToTheOperatorThatStatusAndFinalizerName(t *testing.T) {
	const other = "other.corbel.run"
	for name, test := range map[string]struct {
		reconciler, adopted string
		finalizers          []string
		claimed             bool
		former              string
	}{
		"a new component":                                {},
		"our own component":                              {reconciler: "test.corbel.run", finalizers: []string{"test.corbel.run"}},
		"another operator has claimed it":                {reconciler: other, finalizers: []string{other}, claimed: true},
		"the other operator has left":                    {reconciler: other},
		"the annotation names the other operator":        {reconciler: other, adopted: other, finalizers: []string{other}, former: other},
		"the annotation names an operator without claim": {reconciler: "test.corbel.run", adopted: other, finalizers: []string{other}},
	} {
		h, _ := testHandler(t, &fakeEngine{})
		obj := newWidget()
		obj.Status.Reconciler, obj.Finalizers = test.reconciler, test.finalizers
		if test.adopted != "" {
			obj.Annotations = map[string]string{"test.corbel.run/adopt-operator": test.adopted}
		}
		if claim := h.self.Claim(obj, obj.Status.Reconciler); claim != "" != test.claimed {
			t.Errorf("%s: claimed by another operator: %q", name, claim)
		}
		if got := h.self.Former(obj); got != test.former {
			t.Errorf("%s: the former operator is %q, want %q", name, got, test.former)
		}
	}
	for _, wrong := range []string{"test.corbel.run", "Not a name", "a/b"} {
		h, _ := testHandler(t, &fakeEngine{})
		obj := newWidget()
		obj.Annotations = map[string]string{"test.corbel.run/adopt-operator": wrong}
		reconcileOnce(t, h, obj)
		_, _, message := obj.GetStatus().GetState()
		checkMistakes(t, errors.New(message), "must be the name of another operator")
	}
}

func TestWhichStatusIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		change             func(w *widget)
		unclaimed, claimed bool // without our finalizer; claimed by this process just now
		want               bool
	}{
		"an empty status":                       {want: true},
		"a condition of another writer":         {change: func(w *widget) { w.Status.Conditions = []metav1.Condition{{Type: "Other"}} }, want: true},
		"the default of the definition":         {change: func(w *widget) { w.Status.ObservedGeneration = -1 }, want: true},
		"a new component":                       {unclaimed: true},
		"a component that was claimed just now": {claimed: true},
		"applied, and no inventory":             {change: func(w *widget) { w.Status.State, w.Status.AppliedGeneration = v1alpha1.StateReady, 1 }, want: true},
		"applied, and an empty inventory":       {change: func(w *widget) { w.Status.AppliedGeneration, w.Status.Inventory.Format = 1, v1alpha1.InventoryFormat }},
		"applied, and an inventory":             {change: func(w *widget) { w.Status.AppliedGeneration, w.Status.Inventory = 1, someInventory }},
		"waiting since an earlier build":        {change: func(w *widget) { w.Status.State, w.Status.Revision = v1alpha1.StatePending, 1 }},
		"suspended since an earlier build":      {change: func(w *widget) { w.Status.State = v1alpha1.StateSuspended }},
		"a list of another runtime that was taken over": {change: func(w *widget) {
			_ = json.Unmarshal([]byte("[]"), &w.Status.Inventory)
			w.Status.Inventory.Adopt()
			w.Status.AppliedGeneration = 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			obj := newWidget()
			if !test.unclaimed {
				obj.Finalizers = []string{h.self.Finalizer}
			}
			if test.change != nil {
				test.change(obj)
			}
			noted := h.records.NoteLost(obj, test.claimed)
			if got := obj.Status.Inventory.IsLost(); got != test.want || got != noted || got && isEmpty(obj) {
				t.Errorf("lost %t, empty %t", got, isEmpty(obj))
			}
		})
	}
}

// No state of an earlier build counts as lost.
func TestNoStatusOfAnEarlierBuildIsLost(t *testing.T) {
	files, err := filepath.Glob("testdata/upgrade/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		check(t, err)
		var objects []widget
		check(t, json.Unmarshal(content, &objects))
		for i := range objects {
			if obj := &objects[i]; obj.Kind == "Widget" {
				h, _ := testHandler(t, &fakeEngine{})
				h.self.Finalizer = obj.Finalizers[0]
				if h.records.NoteLost(obj, false); obj.Status.Inventory.IsLost() {
					t.Errorf("%s: %s", file, obj.Name)
				}
			}
		}
	}
}
