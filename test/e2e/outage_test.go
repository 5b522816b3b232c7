// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"sync/atomic"
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
	fuse := &fuse{}
	f.startWith(t, bundleManifests, fuse.wrap)
	for _, step := range []struct {
		name string
		want []string
	}{{"install", lifeOne}, {"upgrade", lifeTwo}, {"delete", nil}} {
		burnt := fuse.light(6, func() {
			if err := e.KillAPIServer(); err != nil {
				t.Error(err)
			}
		})
		f.ask(t, succession{}, change{content: step.want})
		<-burnt
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

// fuse does something before a certain request is sent.
type fuse struct{ lit atomic.Pointer[charge] }

type charge struct {
	left atomic.Int64
	call func()
	done chan struct{}
}

// light makes the fuse burn for so many requests. The channel is closed when
// the call has ended.
func (f *fuse) light(requests int64, call func()) <-chan struct{} {
	c := &charge{call: call, done: make(chan struct{})}
	c.left.Store(requests)
	f.lit.Store(c)
	return c.done
}

func (f *fuse) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if c := f.lit.Load(); c != nil && !isBackground(r) && c.left.Add(-1) == 0 {
			c.call()
			close(c.done)
		}
		return next.RoundTrip(r)
	})
}
