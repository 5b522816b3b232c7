// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/wire"
)

// watchWire is what a manager sends its requests through. It can cut the watches of
// config maps, as a server does after some minutes: before, it does not ask again
// whether they are allowed.
type watchWire struct {
	lock sync.Mutex
	open []context.CancelFunc
	code int // the last answer to a request for a watch
}

func (w *watchWire) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		watch := r.URL.Query().Get("watch")
		if !strings.HasSuffix(r.URL.Path, "/configmaps") || watch != "1" && watch != "true" {
			return next.RoundTrip(r)
		}
		ctx, cancel := context.WithCancel(r.Context())
		response, err := next.RoundTrip(r.WithContext(ctx))
		w.lock.Lock()
		defer w.lock.Unlock()
		w.open = append(w.open, cancel)
		if err == nil {
			w.code = response.StatusCode
		}
		return response, err
	})
}

// cut ends all watches, and returns how the last one was answered.
func (w *watchWire) cut() int {
	w.lock.Lock()
	for _, cancel := range w.open {
		cancel()
	}
	w.open = nil
	w.lock.Unlock()
	return w.last()
}

// last is how the last watch was answered.
func (w *watchWire) last() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.code
}

// tenant makes the operator of the test a user with rights in one namespace only.
func (b *bed) tenant(user string, wrap func(http.RoundTripper) http.RoundTripper, configMapVerbs string) *component.Reconciler[*widget.Widget] {
	b.Helper()
	b.grant(user, append(slices.Clone(ownRights), rule("", "configmaps", configMapVerbs))...)
	manager := b.restricted(user, wrap)
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		Operator: component.OperatorOptions{OperatorNamespace: &b.namespace, ClusterUID: new("a-name-of-this-cluster")},
	})
	b.check(r.SetupWithManager(manager))
	b.user, b.auditOptions.User = user, user
	b.start(manager)
	return r
}

// regrant replaces the rights of a user to config maps.
func (b *bed) regrant(user, verbs string) {
	b.Helper()
	role := &rbacv1.Role{}
	b.check(b.client.Get(b.Context(), b.key(user), role))
	role.Rules[len(role.Rules)-1].Verbs = strings.Fields(verbs)
	b.check(b.client.Update(b.Context(), role))
}

// comesToBeReady waits until the component is ready as it is now.
func (b *bed) comesToBeReady() {
	b.Helper()
	b.comesTo(func() (string, bool) {
		w := b.get()
		state, reason, message := w.Status.GetState()
		return fmt.Sprintf("%s, %s: %s", state, reason, message), w.Status.IsReady() && w.Status.ObservedGeneration == w.Generation
	})
}

// comesToHold waits until a config map has the value, and does something before each look.
func (b *bed) comesToHold(name, value string, before func()) {
	b.Helper()
	b.comesTo(func() (string, bool) {
		before()
		got, exists := b.configMap(name)
		return fmt.Sprintf("%q, exists: %t", got, exists), got == value
	})
}

func nothing() {}

// comesToRest waits until the component is ready and no more reconciles are run.
func (b *bed) comesToRest() {
	b.Helper()
	b.comesToBeReady()
	reconciles, still := -1, 0
	b.comesTo(func() (string, bool) {
		before := reconciles
		reconciles = 0
		for _, e := range b.events()[b.firstEvent:] {
			if e.User == b.user && e.Resource == "widgets" && e.Verb == "get" {
				reconciles++
			}
		}
		if still++; reconciles != before {
			still = 0
		}
		return fmt.Sprintf("%d reconciles", reconciles), still == 10
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

func TestInOneNamespaceAnEventRepairsDriftAndWithoutWatchesItIsRepairedLater(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	const user, all, blind = "watching-tenant", "get list watch create update patch delete", "get create update patch delete"
	wire := &watchWire{}
	r := b.tenant(user, wire.wrap, all)
	// Each object is damaged once: one that is corrected again and again is read anyway.
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1"}})
	b.comesToBeReady()

	// Nothing but its event shows the drift.
	b.resetRequests()
	b.tamper("a", "kubectl-edit")
	b.comesToHold("a", "1", nothing)
	repair := b.sent("configmaps")
	if len(repair) > 0 && strings.HasPrefix(repair[0], "watch ") { // it may have started after the component became ready
		repair = repair[1:]
	}
	if diff := cmp.Diff([]string{"get a: 200", "update a: 200"}, repair); diff != "" {
		t.Errorf("the requests of a repair (-want +got):\n%s", diff)
	}
	b.check(b.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("b")}))
	b.comesToHold("b", "1", nothing)

	b.regrant(user, blind)
	b.comesTo(func() (string, bool) { code := wire.cut(); return fmt.Sprint(code), code == http.StatusForbidden })
	b.tamper("c", "kubectl-edit")
	b.comesToHold("c", "1", func() { b.check(r.Trigger(b.namespace, "main")) })
	b.comesToRest()

	// What happens before it is watched again is not missed.
	b.tamper("d", "kubectl-edit")
	b.regrant(user, all)
	b.comesTo(func() (string, bool) { code := wire.last(); return fmt.Sprint(code), code == http.StatusOK })
	b.comesToHold("d", "1", nothing)
	b.tamper("e", "kubectl-edit")
	b.comesToHold("e", "1", nothing)
	b.comesToBeReady()
}
