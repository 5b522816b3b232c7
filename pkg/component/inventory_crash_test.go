// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// isNoEvent reports whether a request is none that is sent in the background.
func isNoEvent(r *http.Request) bool { return !strings.Contains(r.URL.Path, "/events") }

// TestACrashWhileTheInventoryIsInSecretsLosesNothing kills the operator at every
// request of the deletion of a namespace with a component with a large inventory, and replaces it.
func TestACrashWhileTheInventoryIsInSecretsLosesNothing(t *testing.T) {
	crashAtEachRequest(t, func(t *testing.T, at int, after bool) (int, bool) { return play(t, at, after) })
}

// crashAtEachRequest plays a story with an operator that is killed before, and one that is killed after, each of its requests. The story
// returns how many requests there are, and whether the operator was killed; at 0 it is not.
func crashAtEachRequest(t *testing.T, story func(t *testing.T, at int, after bool) (requests int, crashed bool)) {
	t.Helper()
	total, _ := story(t, 0, false)
	cases, ran, crashes := slice.FromEnvironment(t), 0, 0
	for at := 1; at <= total; at++ {
		for i, after := range []bool{false, true} {
			if !cases.Has(2*at + i) {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("request %d, answered %t", at, after), func(t *testing.T) {
				if _, crashed := story(t, at, after); crashed {
					crashes++
				}
			})
		}
	}
	t.Logf("%d requests, %d cases, %d of them crashed", total, ran, crashes)
	if crashes < ran*9/10 {
		t.Errorf("only %d of %d cases crashed", crashes, ran)
	}
}

// stage is a bed that replaces its operator after a crash.
type stage struct {
	*bed
	gate     *wire.Gate
	replaced bool
}

// play deletes the namespace and returns the number of requests after the trap was armed, and
// whether the operator was killed.
func play(t *testing.T, at int, after bool) (requests int, crashed bool) {
	t.Helper()
	s := &stage{gate: &wire.Gate{Counts: isNoEvent}}
	s.bed = newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, smallStatus, func(b *bed) {
		b.manager = newManagerVia(t, b.env, b.user, s.gate.Wrap)
	})
	namespaceGoes(s, at, after)
	s.eventually("the component to be gone", func() error {
		err := s.next()
		if getErr := s.client.Get(t.Context(), s.key("main"), &widget.Widget{}); !apierrors.IsNotFound(getErr) {
			return fmt.Errorf("it is still there (%v)", err)
		}
		return nil
	})
	if left := s.secrets(); len(left) > 0 {
		t.Errorf("%d Secrets are left", len(left))
	}
	for name := range many(0, 18) {
		if _, ok := s.configMap(name); ok {
			t.Errorf("config map %s is still there", name)
		}
	}
	return len(s.gate.Requests()), s.gate.HasCrashed()
}

// next runs a reconcile.
func (s *stage) next() error {
	_, err := s.reconciler.Reconcile(s.Context(), ctrl.Request{NamespacedName: s.key("main")})
	if s.gate.HasCrashed() && !s.replaced {
		s.anew()
		s.replaced = true
	}
	return err
}

func (s *stage) ready(recorded int) {
	s.Helper()
	s.eventually("the component to become ready", func() error {
		err := s.next()
		w := s.get()
		if state, _, message := w.Status.GetState(); state != v1alpha1.StateReady || w.Status.AppliedGeneration != w.Generation {
			return fmt.Errorf("%s: %s (%v)", state, message, err)
		}
		return nil
	})
	if got := s.get().Status.Inventory.Count(); got != recorded {
		s.Errorf("%d objects are recorded, want %d", got, recorded)
	}
}

// namespaceGoes does what the namespace controller does, as far as it matters.
func namespaceGoes(s *stage, at int, after bool) {
	s.Helper()
	s.create(widget.Spec{Values: many(0, 18)})
	s.ready(18)
	s.check(s.client.Delete(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
	for _, secret := range s.secrets() {
		s.check(s.client.Delete(s.Context(), &secret))
	}
	s.check(s.client.Delete(s.Context(), s.get()))
	held := &corev1.ConfigMap{}
	s.check(s.client.Get(s.Context(), s.key("config-07"), held))
	held.Finalizers = []string{"test.corbel.run/held"}
	s.check(s.client.Update(s.Context(), held))

	s.gate.Aim(at, after, nil)
	s.eventually("all objects but one to be gone", func() error {
		err := s.next()
		for name := range many(0, 18) {
			if _, ok := s.configMap(name); ok && name != held.Name {
				return fmt.Errorf("config map %s is there (%v)", name, err)
			}
		}
		return nil
	})
	s.check(s.client.Get(s.Context(), s.key(held.Name), held))
	held.Finalizers = nil
	s.check(s.client.Update(s.Context(), held))
}
