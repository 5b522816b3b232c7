// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

func TestWhatIsRemovedIsReadAgainIfACreationMayBeUnderWay(t *testing.T) {
	const later = 76 * time.Second // longer than an API server takes for a request
	tests := []struct {
		name string
		// do is done with the component before its deletion, by the bed and a function that starts the next leader.
		do       func(b *bed, next func())
		unlocked bool
		readOnce bool
	}{
		{name: "this process has claimed the component", do: func(*bed, func()) {}},
		{name: "there is no lock", do: func(b *bed, _ func()) { b.forward += later }, unlocked: true, readOnce: true},
		{name: "another process led before", do: func(_ *bed, next func()) { next() }, readOnce: true},
		{name: "another process led a while ago", do: func(b *bed, next func()) {
			next()
			b.until(v1alpha1.StateReady)
			b.forward += later
		}},
		{name: "this process has not seen the component before", do: func(b *bed, next func()) {
			next()
			b.forward += later
		}, readOnce: true},
		{name: "a reconcile has failed", do: failOnce, readOnce: true},
		{name: "a reconcile failed a while ago", do: func(b *bed, next func()) {
			failOnce(b, next)
			b.forward += later
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			generator := manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
				if p.(*widget.Spec).Values["fail"] != "" {
					return nil, errors.New("as the spec says")
				}
				return configMaps(ctx, namespace, name, p)
			})
			lease := fmt.Sprintf("lease-%s", uuid.NewUUID())
			lock := func() component.ReconcilerOptions {
				if test.unlocked {
					return component.ReconcilerOptions{}
				}
				return component.ReconcilerOptions{Controller: component.ControllerOptions{LeaderLock: must(component.NewLeaderLock(env.Shared(t).Config(), "default", lease))(t)}}
			}
			options := lock()
			b := newBed(t, generator, options)
			lead := func() {
				if !test.unlocked {
					b.lead(options.Controller.LeaderLock, 600)
				}
			}
			lead()
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			b.until(v1alpha1.StateReady)
			test.do(b, func() {
				options = lock()
				b.restartWith(generator, options)
				lead()
			})
			b.check(b.client.Delete(t.Context(), b.get()))
			b.resetRequests()
			b.untilGone()
			reads := 0
			for _, e := range b.events()[b.since:] {
				if e.User == b.user && e.Verb == "get" && e.Resource == "configmaps" {
					reads++
				}
			}
			if (reads == 1) != test.readOnce || reads > 1 {
				t.Errorf("the object was read %d times", reads)
			}
		})
	}
}

// failOnce lets a reconcile fail.
func failOnce(b *bed, _ func()) {
	b.update(func(w *widget.Widget) { w.Spec.Values["fail"] = "1" })
	if _, _, err := b.reconcile(); err == nil {
		b.Fatal("the reconcile does not fail")
	}
	b.update(func(w *widget.Widget) { delete(w.Spec.Values, "fail") })
	b.until(v1alpha1.StateReady)
}
