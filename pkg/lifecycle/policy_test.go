// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/test/widget"
)

const (
	name       = "test.corbel.run"
	policyMark = name + "/management-policy"
	ownerMark  = name + "/operator-namespace"
)

// namespaces reads namespaces that have an annotation, or cannot be read.
type namespaces struct {
	client.Reader
	policy string
	err    error
	reads  int
}

func (n *namespaces) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	n.reads++
	if n.err != nil {
		return n.err
	}
	obj.SetName(key.Name)
	if n.policy != "" {
		obj.SetAnnotations(map[string]string{policyMark: n.policy})
	}
	return nil
}

// named makes the loop know annotations.
func (b *bench) named(change func(*session.Options[*widget.Widget])) {
	b.Helper()
	b.options.Name = name
	if change != nil {
		change(&b.options)
	}
	b.rebuild(b.handler)
}

func TestThePolicyOfTheObjectCountsBeforeThatOfItsNamespaceAndThatBeforeTheOption(t *testing.T) {
	for _, tc := range []struct {
		name                      string
		object, namespace, option string
		unreadable                bool
		want                      string // the call that is made, or nothing
		reason                    string // of Ready
		says                      string
	}{
		{name: "nothing said", want: "CreateOrUpdate", reason: "Ready"},
		{name: "option", option: "Skip", want: "UpdateStatus", reason: "Suspended"},
		{name: "namespace before option", namespace: "skip", option: "Manage", want: "UpdateStatus", reason: "Suspended"},
		{name: "object before namespace", object: "manage", namespace: "skip", want: "CreateOrUpdate", reason: "Ready"},
		{name: "object before option", object: "Skip", option: "Manage", want: "UpdateStatus", reason: "Suspended"},
		{name: "detach-on-delete is about deletion only", object: "detach-on-delete", want: "CreateOrUpdate", reason: "Ready"},
		{name: "unknown on the object", object: "off", reason: "SpecInvalid", says: `Widget ns/a: annotation test.corbel.run/management-policy: "off" must be one of manage, skip, detach-on-delete`},
		{name: "unknown on the object is not passed over", object: "off", namespace: "manage", reason: "SpecInvalid", says: "Widget ns/a: annotation"},
		{name: "empty on the object", object: " ", reason: "SpecInvalid", says: `" " must be one of`},
		{name: "unknown on the namespace", namespace: "off", reason: "SpecInvalid", says: `Namespace ns: annotation test.corbel.run/management-policy: "off" must be one of`},
		{name: "unknown on the namespace is the namespace's business", object: "manage", namespace: "off", want: "CreateOrUpdate", reason: "Ready"},
		{name: "an unreadable namespace", unreadable: true, reason: "Error", says: "the annotation test.corbel.run/management-policy on the object itself makes that unnecessary: forbidden"},
		{name: "an unreadable namespace that does not matter", object: "skip", unreadable: true, want: "UpdateStatus", reason: "Suspended"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, &handler{}, func(w *widget.Widget) {
				claimed(w)
				if tc.object != "" {
					w.Annotations = map[string]string{policyMark: tc.object}
				}
			})
			reader := &namespaces{policy: tc.namespace}
			if tc.unreadable {
				reader.err = errors.New("forbidden")
			}
			b.named(func(o *session.Options[*widget.Widget]) {
				o.Namespaces, o.ManagementPolicy = reader, v1alpha1.ManagementPolicy(tc.option)
			})
			out, err := b.reconcile()
			if tc.unreadable && tc.want == "" {
				if err == nil {
					t.Error("the error is lost")
				}
			} else if err != nil || out.RequeueAfter != interval {
				t.Errorf("returned %v, %v", out, err)
			}
			calls := strings.ReplaceAll(strings.Join(b.handler.calls, " "), "Claim ", "")
			if ready := conditions.Get(b.read(), "Ready"); calls != tc.want || ready.Reason != tc.reason || !strings.Contains(ready.Message, tc.says) {
				t.Errorf("calls %q, Ready %+v", calls, ready)
			}
		})
	}
}

func TestDeletionUnderEachPolicy(t *testing.T) {
	const starts, orphans = "Normal BeginDelete the deletion starts", "Normal Detached what was made for the object is orphaned"
	for policy, want := range map[string]struct {
		event string
		calls []string
	}{
		"manage":           {starts, []string{"Delete", "ForgetObject"}},
		"skip":             {orphans, []string{"ForgetObject"}},
		"detach-on-delete": {orphans, []string{"ForgetObject"}},
	} {
		b := newBench(t, &handler{}, claimed)
		b.update(func(w *widget.Widget) { w.Annotations = map[string]string{policyMark: policy} })
		b.named(nil)
		b.delete()
		if _, err := b.reconcile(); err != nil || b.read() != nil {
			t.Errorf("%s: the object is not gone: %v", policy, err)
		}
		b.wantCalls(want.calls...)
		if got := <-b.recorder.Events; got != want.event || len(b.recorder.Events) != 0 {
			t.Errorf("%s: event %q and %d more, want %q", policy, got, len(b.recorder.Events), want.event)
		}
	}
}

func TestUnderAnUnknownPolicyAnObjectIsNotDeletedUntilThePolicyIsCorrected(t *testing.T) {
	b := newBench(t, &handler{}, claimed)
	b.update(func(w *widget.Widget) { w.Annotations = map[string]string{policyMark: "detach"} })
	b.named(nil)
	b.delete()
	if out, err := b.reconcile(); err != nil || out.RequeueAfter != interval {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls()
	if w := b.read(); !conditions.IsStalled(w) || conditions.Get(w, "Ready").Reason != "SpecInvalid" {
		t.Errorf("conditions %+v", w.Status.Conditions)
	}
	b.update(func(w *widget.Widget) { w.Annotations[policyMark] = "detach-on-delete" })
	if _, err := b.reconcile(); err != nil || b.read() != nil {
		t.Errorf("the object is not gone: %v", err)
	}
}

func TestAnObjectCanBeOrphanedIfItsHandlerPanics(t *testing.T) {
	boom := func() bool { panic("boom") }
	b := newBench(t, &handler{suspended: boom, orphaned: boom}, claimed)
	b.named(nil)
	b.delete()
	if _, err := b.reconcile(); err == nil || b.read() == nil {
		t.Errorf("error %v", err)
	}
	b.wantCalls()
	b.update(func(w *widget.Widget) { w.Annotations = map[string]string{policyMark: "detach-on-delete"} })
	if _, err := b.reconcile(); err != nil || b.read() != nil {
		t.Errorf("the object is not gone: %v", err)
	}
}

func TestAnObjectBelongsToTheOperatorThatClaimedItFirst(t *testing.T) {
	b := newBench(t, &handler{}, nil)
	b.named(func(o *session.Options[*widget.Widget]) { o.OperatorNamespace = "one" })
	b.mustReconcile()
	b.wantRequests("get", "patch", "patch status")
	if w := b.read(); w.Annotations[ownerMark] != "one" || len(w.Finalizers) != 1 {
		t.Errorf("metadata %+v", w.ObjectMeta)
	}
	one := b.loop
	b.named(func(o *session.Options[*widget.Widget]) { o.OperatorNamespace = "two" })
	<-b.recorder.Events
	for _, life := range []func(){func() {}, b.delete} {
		life()
		if out, err := b.reconcile(); err != nil || out != (reconcile.Result{}) {
			t.Errorf("returned %v, %v", out, err)
		}
		b.wantCalls("ForgetObject") // nothing is kept about it
		b.wantRequests("get")
	}
	const want = "Normal OwnedElsewhere the annotation test.corbel.run/operator-namespace says that the object belongs to the operator in namespace one; this one, in namespace two, leaves it alone"
	if got := <-b.recorder.Events; got != want || len(b.recorder.Events) != 0 {
		t.Errorf("event %q and %d more", got, len(b.recorder.Events))
	}
	// A change of the annotation hands the object over.
	b.update(func(w *widget.Widget) { w.Annotations[ownerMark] = "two" })
	two := b.loop
	b.loop = one
	if _, err := b.reconcile(); err != nil || b.read() == nil {
		t.Error("the former owner went on")
	}
	b.wantCalls("ForgetObject")
	b.loop = two
	if _, err := b.reconcile(); err != nil || b.read() != nil {
		t.Errorf("the object is not gone: %v", err)
	}
}

func TestOfTwoOperatorsThatReconcileANewObjectOneClaimsIt(t *testing.T) {
	b := newBench(t, &handler{}, nil)
	b.named(func(o *session.Options[*widget.Widget]) { o.OperatorNamespace = "one" })
	b.handler.claim = func(context.Context, *widget.Widget) error {
		b.update(func(w *widget.Widget) { w.Annotations = map[string]string{ownerMark: "two"} })
		return nil
	}
	if out, err := b.reconcile(); err != nil || out.RequeueAfter == 0 {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls("Claim")
	if w := b.read(); w.Annotations[ownerMark] != "two" || len(w.Finalizers) != 0 {
		t.Errorf("metadata %+v", w.ObjectMeta)
	}
}

func TestTheFinalizerFollowsFromTheName(t *testing.T) {
	b := newBench(t, &handler{}, nil)
	b.options.Finalizer = ""
	b.named(nil)
	b.mustReconcile()
	if w := b.read(); len(w.Finalizers) != 1 || w.Finalizers[0] != name+"/finalizer" {
		t.Errorf("finalizers %v", w.Finalizers)
	}
}
