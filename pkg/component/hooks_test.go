// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestRunHooks(t *testing.T) {
	fails := func(context.Context, client.Client, *widget) error { return errors.New("no") }
	note := func(text string) HookFunc[*widget] {
		return func(_ context.Context, _ client.Client, w *widget) error { w.Status.Note += text; return nil }
	}
	changes := func(change func(*widget)) HookFunc[*widget] {
		return func(_ context.Context, _ client.Client, w *widget) error { change(w); return nil }
	}
	tests := []struct {
		name  string
		hooks []HookFunc[*widget]
		note  string
		err   string
	}{
		{name: "none"},
		{name: "all, in their order", hooks: []HookFunc[*widget]{note("a"), note("b"), note("c")}, note: "abc"},
		{name: "until one fails", hooks: []HookFunc[*widget]{note("a"), fails, note("c")}, note: "a", err: "pre-delete hook 2: no"},
		{name: "a panic is a failure", hooks: []HookFunc[*widget]{func(context.Context, client.Client, *widget) error { panic("oh") }},
			err: "pre-delete hook 1: panicked: oh"},
		{name: "an ignored error is none", hooks: []HookFunc[*widget]{
			func(context.Context, client.Client, *widget) error {
				return &result.Generic{Ignore: true, Err: errors.New("no")}
			}, note("b")}, note: "b"},
		{name: "the spec must not change", hooks: []HookFunc[*widget]{changes(func(w *widget) { w.Spec.Size++ })},
			err: "pre-delete hook 1: changed the spec of the component; it may change the status only"},
		{name: "the metadata must not change", hooks: []HookFunc[*widget]{changes(func(w *widget) { w.Finalizers = nil })},
			err: "pre-delete hook 1: changed the metadata"},
		{name: "nothing else must change", hooks: []HookFunc[*widget]{changes(func(w *widget) { w.Kind = "Gadget" })},
			err: "pre-delete hook 1: changed more of the component than its status"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			h.code.hooks[preDelete] = hooksOf(test.hooks...)
			obj := newWidget()
			obj.Finalizers = []string{"test.corbel.run"}
			err := h.runHooks(t.Context(), preDelete, obj)
			if test.err != "" {
				checkMistakes(t, err, test.err)
			} else if err != nil {
				t.Error(err)
			}
			if obj.Status.Note != test.note || obj.Spec.Size != 0 || len(obj.Finalizers) != 1 {
				t.Errorf("the component became %+v", obj)
			}
		})
	}
}

func TestHooksCannotHarmOurStatus(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.code.hooks[postRead] = hooksOf(func(_ context.Context, _ client.Client, w *widget) error {
		w.Status = widgetStatus{Note: "mine", Status: Status{Conditions: []metav1.Condition{
			{Type: "Backup", Status: metav1.ConditionTrue}, {Type: "Ready", Status: metav1.ConditionTrue},
		}}}
		return nil
	})
	obj := newWidget()
	obj.Status.State, obj.Status.Inventory = v1alpha1.StateProcessing, v1alpha1.Inventory{Items: []v1alpha1.InventoryItem{{Name: "a"}}}
	obj.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown}}
	want := obj.Status
	want.Note = "mine"
	want.Conditions = []metav1.Condition{{Type: "Backup", Status: metav1.ConditionTrue}, {Type: "Ready", Status: metav1.ConditionUnknown}}
	if err := h.runHooks(t.Context(), postRead, obj); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, obj.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestContextOfHooksAndGenerators(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.local = client.NewNamespacedClient(nil, "local")
	h.targets.(*fakeTargets).target.Client = client.NewNamespacedClient(nil, "target")
	var seen []string
	look := func(ctx context.Context) {
		var have []string
		known := manifests.FromContext(ctx)
		add := func(name string, there bool) {
			if there {
				have = append(have, name)
			}
		}
		add("reconciler", known.ReconcilerName != "")
		add("local", known.LocalClient != nil)
		_, err := ClientFromContext(ctx)
		add("client", err == nil)
		add("digest", known.Digest != "")
		add("revision"+strings.Repeat("+", int(known.Revision)), known.Revision > 0)
		if known.Component != nil {
			add(known.Component.GetNamespace()+"/"+known.Component.GetName(), true)
		}
		seen = append(seen, strings.Join(have, " "))
	}
	hook := func(ctx context.Context, _ client.Client, _ *widget) error { look(ctx); return nil }
	for _, point := range []hookPoint{postRead, preReconcile, postReconcile} {
		h.code.hooks[point] = hooksOf(hook)
	}
	h.revisions.Renderer.Generator = generatorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
		look(ctx)
		return nil, nil
	})
	if _, err := h.applier.createOrUpdate(t.Context(), newWidget(), noCommit); err != nil {
		t.Fatal(err)
	}
	const full = "reconciler local client digest revision+ shop/main"
	// The generator is called twice after a change.
	want := []string{"reconciler local shop/main", full, full, full}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("contexts (-want +got):\n%s", diff)
	}
}
