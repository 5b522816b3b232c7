// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// between lets a test do something right before a request is sent: what happens
// between two requests happens there in the same way every time.
type between struct {
	lock sync.Mutex
	sent []string // method and path
	hook func(request string)
	busy atomic.Bool
	// dead lets no request through any more: for the server, we have crashed.
	dead atomic.Bool
}

func (b *between) wrap(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(request *http.Request) (*http.Response, error) {
			text := request.Method + " " + request.URL.Path
			b.lock.Lock()
			b.sent = append(b.sent, text)
			hook := b.hook
			b.lock.Unlock()
			if hook != nil && b.busy.CompareAndSwap(false, true) {
				hook(text)
				b.busy.Store(false)
			}
			if b.dead.Load() {
				return nil, errors.New("we have crashed")
			}
			return next.RoundTrip(request)
		})
	})
	return config
}

// before calls the function once, before the first request that starts with the
// text, and reports whether that has happened.
func (b *between) before(prefix string, call func()) (happened func() bool) {
	var done atomic.Bool
	b.lock.Lock()
	defer b.lock.Unlock()
	b.hook = func(request string) {
		if strings.HasPrefix(request, prefix) && done.CompareAndSwap(false, true) {
			call()
		}
	}
	return done.Load
}

// requests returns what was sent since the last call and starts with the text.
func (b *between) requests(prefix string) (matching []string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, request := range b.sent {
		if strings.HasPrefix(request, prefix) {
			matching = append(matching, request)
		}
	}
	b.sent = nil
	return matching
}

// interpose gives the bench an engine with the options; between its requests
// something can happen.
func (b *bench) interpose(t *testing.T, options reconciler.ReconcilerOptions) *between {
	t.Helper()
	between := &between{}
	target, err := cluster.New(between.wrap(env.Shared(t).Config()), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	if b.engine, err = reconciler.NewReconciler(engineName, reconciler.Target{Target: target}, keyed(options)); err != nil {
		t.Fatal(err)
	}
	return between
}
