// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// TestAnOutageOfTheAPIServerIsOvercome kills the API server in the middle of an
// installation, of an upgrade and of a deletion, starts it again, and expects the
// same operator to come to the end without help: every object there that is
// desired, none twice, none left over.
func TestAnOutageOfTheAPIServerIsOvercome(t *testing.T) {
	t.Parallel()
	e := env.New(t, env.Options{})
	f := &fixture{Client: installBundles(t, e), env: e}
	f.target = f.Client
	f.namespace = f.newNamespace(t)
	cast := newCast(t, f, f.objects(t, append(append([]string{}, lifeOne...), lifeTwo...)))
	gate := &wire.Gate{Counts: func(r *http.Request) bool { return !isBackground(r) }}
	f.startWith(t, bundleManifests, gate.Wrap)
	for _, step := range []struct {
		name string
		want []string
	}{{"install", lifeOne}, {"upgrade", lifeTwo}, {"delete", nil}} {
		killed := make(chan error, 1)
		gate.Aim(6, false, func() error { killed <- e.KillAPIServer(); return nil })
		f.ask(t, succession{}, change{content: step.want})
		if err := <-killed; err != nil {
			t.Error(err)
		}
		if err := e.RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.settled(t, change{content: step.want})
		s := &scenario{desired: map[string][]string{"main": step.want}}
		for _, object := range f.objects(t, step.want) {
			s.owned = append(s.owned, nameOf(object))
		}
		if step.want == nil {
			s.desired = nil
		}
		s.check(t, f, cast, nil)
		s.checkContent(t, f)
	}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "main"}, &Bundle{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the component: %v", err)
	}
}
