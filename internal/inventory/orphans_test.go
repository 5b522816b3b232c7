// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/check"
)

var configMaps = Kind{Kind: "ConfigMap", Namespaced: true}

// only asks about the component of the fixture: other tests run on the same server, one
// after the other. Nothing is asked at the same time.
func (d *fixture) only(look func(c Component) (State, error)) StateFunc {
	var mu sync.Mutex
	return func(_ context.Context, c Component) (State, error) {
		if c.UID != d.component.UID {
			return StateElsewhere, nil
		}
		mu.Lock()
		defer mu.Unlock()
		return look(c)
	}
}

// stored returns a fixture with its inventory in Secrets, and the process that wrote it, with what may refuse its requests.
func stored(t *testing.T) (*fixture, *process, *refuser) {
	t.Helper()
	d, server := newFixture(t), &refuser{}
	c := d.process(server.wrap)
	check.NoError(d, c.reconcile(t.Context(), items(0, 20)))
	return d, c, server
}

// onlyLeft compares the name of the only Secret.
func (d *fixture) onlyLeft(name string) {
	d.Helper()
	if left := d.secrets(); len(left) != 1 || left[0].Name != name {
		d.Errorf("%d Secrets are left", len(left))
	}
}

// deleteSecrets deletes all Secrets, which our finalizer holds.
func (d *fixture) deleteSecrets() []corev1.Secret {
	d.Helper()
	secrets := d.secrets()
	for _, s := range secrets {
		check.NoError(d, d.client.Delete(d.Context(), &s))
	}
	return secrets
}

func TestOrphansAreFoundByANewProcess(t *testing.T) {
	d, _ := spilled(t)
	one := d.full()
	store := d.process(nil).store
	var asked []types.UID
	state, failure := StateElsewhere, error(nil)
	look := func(kind string) error {
		asked = nil
		return store.Orphans().CleanUp(t.Context(), Kind{Kind: kind, Namespaced: true}, d.only(func(c Component) (State, error) {
			asked = append(asked, c.UID)
			return state, failure
		}))
	}
	check.NoError(d, look("ConfigMap"))
	if len(asked) > 0 {
		t.Error("the owner of a Secret that is not being deleted was read")
	}
	check.NoError(d, d.client.Delete(t.Context(), one))
	check.NoError(d, look("Shop"))
	if len(asked) > 0 {
		t.Error("a component of another kind was asked about")
	}
	check.NoError(d, look("ConfigMap"))
	failure = errors.New("the server does not answer")
	if err := look("ConfigMap"); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	before := len(d.secrets())
	state, failure = StateGone, nil
	check.NoError(d, look("ConfigMap"))
	if left := len(d.secrets()); len(asked) != 1 || left != before-1 {
		t.Errorf("asked %d times; %d Secrets of %d are left", len(asked), left, before)
	}
}

func TestOneSecretThatCannotBeRemovedBlocksNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		code  int
		again bool // it is tried again
	}{"for now": {http.StatusTooManyRequests, true}, "that must not be changed": {http.StatusForbidden, false}} {
		t.Run(name, func(t *testing.T) {
			d, _ := spilled(t)
			secrets := d.deleteSecrets()
			var server refuser
			var logged []string
			ctx := logf.IntoContext(t.Context(), funcr.New(func(_, text string) { logged = append(logged, text) }, funcr.Options{}))
			orphans := d.process(server.wrap).store.Orphans()
			cleanUp := func() error {
				return orphans.CleanUp(ctx, configMaps, d.only(func(Component) (State, error) { return StateGone, nil }))
			}
			server.refuse(test.code, secrets[0].Name)
			for range 3 {
				err := cleanUp()
				if (err != nil) != test.again || test.again && (!apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), secrets[0].Name)) {
					t.Errorf("error %v", err)
				}
			}
			d.onlyLeft(secrets[0].Name)
			if test.again {
				server.refuse(0, secrets[0].Name)
				check.NoError(d, cleanUp())
				d.nothingLeft()
			} else if tried := server.refused.Load(); tried != 1 || len(logged) != 1 || !strings.Contains(logged[0], secrets[0].Name) {
				t.Errorf("it was tried %d times, and logged: %q", tried, logged)
			}
		})
	}
}

func TestACachedEntryIsNotReplacedByThatOfAnOrphan(t *testing.T) {
	d, c, _ := stored(t)
	stored := check.Must(c.stored(t.Context()))(d)
	d.deleteSecrets()
	check.NoError(d, c.store.Orphans().CleanUp(t.Context(), configMaps, d.only(func(Component) (State, error) { return StateWithoutFinalizer, nil })))
	if _, known := c.store.OpenCached(d.component, stored); !known {
		t.Error("the inventory is not known any more")
	}
}

// A user with the right to create Secrets can write anything about their owner.
func TestAnOwnerThatCannotExistIsNotRead(t *testing.T) {
	const here = "(here)"
	long := strings.Repeat("x", maxReadable)
	for name, tc := range map[string]struct {
		namespaced      bool
		namespace, name string
		asked           bool
	}{
		"one in the same namespace":                     {true, here, "forged", true},
		"no namespace, and there have to be":            {true, "", "forged", false},
		"another namespace":                             {true, "kube-system", "forged", false},
		"none, and there is none":                       {false, "", "forged", true},
		"a namespace, and there is none":                {false, here, "forged", false},
		"a name that no path can have":                  {true, here, long + "/../x", false},
		"a name that no path can have, in no namespace": {false, "", long + "%2f", false},
		"a name that no object can have":                {true, here, strings.Repeat("x", 10_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			d.component.UID = types.UID("forged-" + d.key.Namespace)
			d.component.Name = tc.name
			if d.component.Namespace = tc.namespace; tc.namespace == here {
				d.component.Namespace = d.key.Namespace
			}
			l := d.process(nil).store
			check.NoError(d, d.client.Create(t.Context(), l.newSecret(d.component, d.key.Namespace, l.naming(d.component).name(1, 0), 1, nil)))
			d.deleteSecrets()
			asked := false
			check.NoError(d, l.Orphans().CleanUp(t.Context(), Kind{Kind: "ConfigMap", Namespaced: tc.namespaced}, d.only(func(c Component) (State, error) {
				asked = true
				check.SameNamed(t, "asked about", d.component, c)
				return StateElsewhere, nil
			})))
			check.SameNamed(t, "asked", tc.asked, asked)
		})
	}
}

// replace deletes the component by force, and makes another one of its name.
func (d *fixture) replace() {
	d.Helper()
	component := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: d.key.Name}}
	check.NoError(d, d.client.Delete(d.Context(), component))
	component.ResourceVersion, component.UID = "", ""
	check.NoError(d, d.client.Create(d.Context(), component))
	d.component.UID = component.UID
}

func gone(context.Context, Component) (State, error) { return StateGone, nil }

func TestSecretsDoNotOutliveAComponentThatIsRemovedByForce(t *testing.T) {
	t.Run("the process knows it and sees its end", func(t *testing.T) {
		d, c, _ := stored(t)
		check.NoError(d, c.store.CleanUpComponent(t.Context(), d.key, gone))
		d.nothingLeft()
	})
	t.Run("the process knows it and meets its successor", func(t *testing.T) {
		d, c, _ := stored(t)
		d.replace()
		c.component = d.component
		check.NoError(d, c.reconcile(t.Context(), items(0, 3)))
		d.nothingLeft()
		c.expect(items(0, 3))
	})
}

func TestTheCacheOfAComponentIsKeptUntilItIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		state State
		err   error
		// again: an error is returned; kept: its Secrets go when it is gone.
		again, kept bool
	}{
		"it is being deleted, and another finalizer holds it": {state: StateWithoutFinalizer, kept: true},
		"it belongs to another process":                       {state: StateElsewhere},
		"the server does not answer":                          {err: errors.New("no answer"), again: true, kept: true},
		"we must not read it":                                 {err: apierrors.NewForbidden(schema.GroupResource{Resource: "shops"}, "main", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			d, c, _ := stored(t)
			before := len(d.secrets())
			left := func(state State, err error) error {
				return c.store.CleanUpComponent(t.Context(), d.key, func(_ context.Context, c Component) (State, error) {
					if c.UID != d.component.UID {
						t.Errorf("asked about %+v", c)
					}
					return state, err
				})
			}
			if err := left(test.state, test.err); (err != nil) != test.again || test.again && !errors.Is(err, test.err) {
				t.Errorf("error %v", err)
			}
			if now := len(d.secrets()); now != before {
				t.Errorf("%d Secrets of %d are left while it exists", now, before)
			}
			check.NoError(d, left(StateGone, nil))
			if test.kept {
				d.nothingLeft()
			} else if now := len(d.secrets()); now != before {
				t.Errorf("%d Secrets of %d are left of what was given away", now, before)
			}
		})
	}
}

func TestASuccessorWaitsUntilTheSecretsOfItsPredecessorAreRemoved(t *testing.T) {
	d, c, server := stored(t)
	before := len(d.secrets())
	d.replace()
	c.component = d.component
	server.refuse(http.StatusTooManyRequests, "")
	for range 2 {
		c.commits = 0
		err := c.reconcile(t.Context(), items(0, 3))
		if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "an earlier ConfigMap "+d.key.String()) {
			t.Fatalf("error %v", err)
		}
		if left := len(d.secrets()); c.commits > 0 || left != before {
			t.Errorf("%d commits; %d Secrets of %d are left", c.commits, left, before)
		}
		// The end of the successor must not drop what is cached of its predecessor.
		check.NoError(d, c.store.Erase(t.Context(), c.component, v1alpha1.Inventory{Chunks: &v1alpha1.InventoryChunks{}}))
	}
	server.refuse(0, "")
	check.NoError(d, c.reconcile(t.Context(), items(0, 3)))
	d.nothingLeft()
	c.expect(items(0, 3))
}

func TestSecretsThatMustNotBeRemovedHoldUpNoSuccessor(t *testing.T) {
	d, c, server := stored(t)
	before := d.secrets()
	d.replace()
	c.component = d.component
	server.refuse(http.StatusForbidden, "")
	check.NoError(d, c.reconcile(t.Context(), items(0, 3)))
	c.expect(items(0, 3))
	if left := len(d.secrets()); left != len(before) {
		t.Fatalf("%d Secrets of %d are left", left, len(before))
	}
	tried := server.refused.Load()
	check.NoError(d, c.reconcile(t.Context(), items(0, 4)))
	if now := server.refused.Load(); now != tried {
		t.Errorf("it was tried again %d times", now-tried)
	}
}

// One that must not be removed does not make the others be given up.
func TestOnlyIfAllIsDeniedItIsGivenUp(t *testing.T) {
	d, c, server := stored(t)
	secrets := d.secrets()
	server.refuse(http.StatusForbidden, secrets[0].Name)
	server.refuse(http.StatusTooManyRequests, secrets[1].Name)
	check.Fails(t, c.store.CleanUpComponent(t.Context(), d.key, gone), secrets[1].Name)
	server.refuse(0, secrets[1].Name)
	check.NoError(d, c.store.CleanUpComponent(t.Context(), d.key, gone))
	d.onlyLeft(secrets[0].Name)
}
