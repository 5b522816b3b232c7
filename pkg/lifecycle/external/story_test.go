// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{}))
}

var mappers struct {
	sync.Mutex
	mapper apimeta.RESTMapper
}

// mapperOnce is the mapper of all clients: what is learned about types is learned once,
// and no request for it is part of a story.
func mapperOnce(t *testing.T, cfg *rest.Config) apimeta.RESTMapper {
	t.Helper()
	mappers.Lock()
	defer mappers.Unlock()
	if mappers.mapper == nil {
		httpClient, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if mappers.mapper, err = apiutil.NewDynamicRESTMapper(cfg, httpClient); err != nil {
			t.Fatal(err)
		}
	}
	return mappers.mapper
}

// The times of the bank's requests, short so that a story that has to wait is quick.
const (
	timeout     = 300 * time.Millisecond
	gracePeriod = 100 * time.Millisecond
)

var stories atomic.Int64

// story is the life of one vault on the real API server: it is created, changed and deleted.
type story struct {
	*testing.T
	user client.Client
	bank *bank
	key  client.ObjectKey
	// part is how far the user has come.
	part int
	// gone records that another client has deleted the vault.
	gone atomic.Bool
}

func newStory(t *testing.T, forgetful bool) *story {
	t.Helper()
	e := env.Shared(t)
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{vaultCRD()}}
	if stories.Load() == 0 {
		if _, err := envtest.InstallCRDs(e.Config(), options); err != nil {
			t.Fatal(err)
		}
	}
	s := &story{T: t, bank: newBank(forgetful)}
	s.key = client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("vault-%d", stories.Add(1))}
	s.user = s.clientVia(nil)
	return s
}

func (s *story) clientVia(wrap func(http.RoundTripper) http.RoundTripper) client.Client {
	s.Helper()
	cfg := rest.CopyConfig(env.Shared(s.T).Config())
	cfg.QPS = -1
	mapper := mapperOnce(s.T, cfg)
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	c, err := client.New(cfg, client.Options{Scheme: vaultScheme(), Mapper: mapper})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// process is one replica of the operator. The test runs each of its reconciles.
type process struct {
	*story
	gate *wire.Gate
	loop *lifecycle.Reconciler[*vault]
}

func (s *story) start(g *wire.Gate) *process {
	s.Helper()
	handler := external.New(&teller{bank: s.bank, wire: toTheBank(g)}, external.Options{
		Timeout: timeout, GracePeriod: gracePeriod, NotIdempotent: s.bank.forgetful,
	})
	loop, err := lifecycle.NewReconciler(handler, lifecycle.Options[*vault]{Name: "test.corbel.run", Client: s.clientVia(g.Wrap)})
	if err != nil {
		s.Fatal(err)
	}
	return &process{story: s, gate: g, loop: loop}
}

func (s *story) get() *vault {
	s.Helper()
	v := &vault{}
	err := s.user.Get(s.Context(), s.key, v)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return v
}

// act does what the user does next.
func (s *story) act() {
	s.Helper()
	var err error
	switch v := s.get(); s.part {
	case 0:
		err = s.user.Create(s.Context(), &vault{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}, Spec: vaultSpec{Size: 1}})
	case 1:
		err = s.change(func(v *vault) { v.Spec.Size = 2 })
	default:
		if v != nil {
			err = s.user.Delete(s.Context(), v)
		}
	}
	if err != nil {
		s.Fatal(err)
	}
	s.part++
}

// change changes the vault as its user, if it is there.
func (s *story) change(how func(*vault)) error {
	for {
		v := &vault{}
		err := s.user.Get(s.Context(), s.key, v)
		if err == nil {
			how(v)
			err = s.user.Update(s.Context(), v)
		}
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
	}
}

// converged reports whether what the user asked for is the case.
func (s *story) converged() bool {
	v := s.get()
	if s.part == 3 || s.gone.Load() {
		return v == nil
	}
	ready := conditions.Get(v, "Ready")
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == v.Generation && v.Status.Size == v.Spec.Size
}

// work reconciles until what the user asked for is the case, or the process has crashed.
func (p *process) work() error {
	p.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !p.converged() {
		if err := p.step(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			created, there, _ := p.bank.count()
			p.Fatalf("part %d comes to no end: %+v; %d rooms created, %d there", p.part, p.get(), created, there)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// step runs one reconcile, and checks the conditions after it.
func (p *process) step() error {
	_, _ = p.loop.Reconcile(p.Context(), reconcile.Request{NamespacedName: p.key})
	if p.gate.HasCrashed() {
		return wire.ErrCrashed
	}
	// A first reconcile that met another client's write has ended without a word.
	if v := p.get(); v != nil && conditions.Has(v, "Ready") {
		conditionstest.Check(p, v)
	}
	return nil
}

// live goes on with the story to its end, or to the death of the process.
func (p *process) live() error {
	p.Helper()
	for {
		if p.part > 0 {
			if err := p.work(); err != nil {
				return err
			}
			p.check()
		}
		if p.part == 3 {
			return nil
		}
		p.act()
	}
}

// check expects one room in life, none after it, and never two.
func (s *story) check() {
	s.Helper()
	created, there, most := s.bank.count()
	over := s.part == 3 || s.gone.Load()
	switch {
	case over && there != 0:
		s.Errorf("%d rooms are leaked", there)
	case most > 1:
		s.Errorf("there were %d rooms at a time", most)
	case created > 1 || !over && created != 1:
		s.Errorf("%d rooms were created", created)
	}
	if !over && !slices.Equal(s.bank.sizes(), []int64{s.get().Spec.Size}) {
		s.Errorf("rooms of the sizes %v", s.bank.sizes())
	}
}

// length is the number of requests of a life in which nothing happens.
func length(t *testing.T, forgetful bool) int {
	t.Helper()
	g := &wire.Gate{}
	if err := newStory(t, forgetful).start(g).live(); err != nil {
		t.Fatal(err)
	}
	return len(g.Requests())
}

var errLost = errors.New("the answer is lost")
