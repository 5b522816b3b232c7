// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/test/audit"
)

// checkConditions checks the conditions of all components at the end, if there was a reconcile over them.
func (b *bed) checkConditions() {
	list := &widget.WidgetList{}
	b.check(b.client.List(context.Background(), list, client.InNamespace(b.namespace)))
	for i := range list.Items {
		if w := &list.Items[i]; len(w.Status.Conditions) > 0 {
			conditionstest.Check(b, conditions.For(w, &w.Status.Conditions))
		}
	}
}

// discard takes the components away, so that no manager of another test goes on with them.
func (b *bed) discard() {
	list := &widget.WidgetList{}
	b.check(b.client.List(context.Background(), list, client.InNamespace(b.namespace)))
	for _, w := range list.Items {
		before := w.DeepCopy()
		w.Finalizers = nil
		b.check(client.IgnoreNotFound(b.client.Patch(context.Background(), &w, client.MergeFrom(before))))
		b.check(client.IgnoreNotFound(b.client.Delete(context.Background(), &w)))
	}
}

// audit checks every write that the operator has made.
func (b *bed) audit() {
	events, err := b.env.AuditEvents(context.Background())
	if err != nil {
		b.Error(err)
		return
	}
	violations, _ := audit.Violations(events[b.firstEvent:], b.auditOptions)
	for _, v := range violations {
		b.Errorf("audit: %s", v)
	}
}
