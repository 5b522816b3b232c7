// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/wire"
)

// replace deletes the component by force, and makes another one of its name.
func (d *desk) replace() {
	d.Helper()
	component := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: d.key.Name}}
	d.check(d.client.Delete(d.Context(), component))
	component.ResourceVersion, component.UID = "", ""
	d.check(d.client.Create(d.Context(), component))
	d.component.UID = component.UID
}

func vanished(context.Context, Component) (Fate, error) { return Vanished, nil }

func TestSecretsDoNotOutliveAComponentThatIsTakenAwayByForce(t *testing.T) {
	t.Run("the process knows it and is told", func(t *testing.T) {
		d := newDesk(t)
		c := d.clerk(nil)
		d.check(c.pass(t.Context(), items(0, 20)))
		d.check(c.ledger.Left(t.Context(), d.key, vanished))
		d.nothingLeft()
	})
	t.Run("the process knows it and meets its successor", func(t *testing.T) {
		d := newDesk(t)
		c := d.clerk(nil)
		d.check(c.pass(t.Context(), items(0, 20)))
		d.replace()
		c.component = d.component
		d.check(c.pass(t.Context(), items(0, 3)))
		d.nothingLeft()
		c.expect(items(0, 3))
	})
}

func TestWhatIsKnownAboutAComponentIsKeptUntilItIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		fate Fate
		err  error
		// again: an error is returned; kept: its Secrets go when it is gone.
		again, kept bool
	}{
		"it is being deleted, and somebody else holds it": {fate: Dying, kept: true},
		"it belongs to another process":                   {fate: Elsewhere},
		"the server does not answer":                      {err: errors.New("no answer"), again: true, kept: true},
		"we must not read it":                             {err: apierrors.NewForbidden(schema.GroupResource{Resource: "shops"}, "main", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			c := d.clerk(nil)
			d.check(c.pass(t.Context(), items(0, 20)))
			before := len(d.secrets())
			left := func(fate Fate, err error) error {
				return c.ledger.Left(t.Context(), d.key, func(_ context.Context, c Component) (Fate, error) {
					if c.UID != d.component.UID {
						t.Errorf("asked about %+v", c)
					}
					return fate, err
				})
			}
			if err := left(test.fate, test.err); (err != nil) != test.again || test.again && !errors.Is(err, test.err) {
				t.Errorf("error %v", err)
			}
			if now := len(d.secrets()); now != before {
				t.Errorf("%d Secrets of %d are left while it exists", now, before)
			}
			d.check(left(Vanished, nil))
			if test.kept {
				d.nothingLeft()
			} else if now := len(d.secrets()); now != before {
				t.Errorf("%d Secrets of %d are left of what was given away", now, before)
			}
		})
	}
}

func TestSecretsThatCannotBeRemovedAreTriedAgain(t *testing.T) {
	d := newDesk(t)
	var refused atomic.Bool
	c := d.clerk(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if refused.Load() && r.Method == http.MethodPatch {
				return nil, errors.New("the line is cut")
			}
			return next.RoundTrip(r)
		})
	})
	d.check(c.pass(t.Context(), items(0, 20)))
	refused.Store(true)
	if err := c.ledger.Left(t.Context(), d.key, vanished); err == nil {
		t.Error("it is not said that Secrets are left")
	}
	refused.Store(false)
	d.check(c.ledger.Left(t.Context(), d.key, vanished))
	d.nothingLeft()
}

func TestASuccessorWaitsUntilTheSecretsOfItsPredecessorAreRemoved(t *testing.T) {
	d := newDesk(t)
	var server refuser
	c := d.clerk(server.wrap)
	d.check(c.pass(t.Context(), items(0, 20)))
	before := len(d.secrets())
	d.replace()
	c.component = d.component
	server.refuse(http.StatusTooManyRequests, "")
	for range 2 {
		c.commits = 0
		err := c.pass(t.Context(), items(0, 3))
		if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "an earlier ConfigMap "+d.key.String()) {
			t.Fatalf("error %v", err)
		}
		if left := len(d.secrets()); c.commits > 0 || left != before {
			t.Errorf("%d commits; %d Secrets of %d are left", c.commits, left, before)
		}
		// What it ends with must not make anybody forget what came before it.
		d.check(c.ledger.Erase(t.Context(), c.component, v1alpha1.Inventory{Chunks: &v1alpha1.InventoryChunks{}}))
	}
	server.refuse(0, "")
	d.check(c.pass(t.Context(), items(0, 3)))
	d.nothingLeft()
	c.expect(items(0, 3))
}

func TestSecretsThatMustNotBeRemovedHoldUpNoSuccessor(t *testing.T) {
	d := newDesk(t)
	var server refuser
	c := d.clerk(server.wrap)
	d.check(c.pass(t.Context(), items(0, 20)))
	before := d.secrets()
	d.replace()
	c.component = d.component
	server.refuse(http.StatusForbidden, "")
	d.check(c.pass(t.Context(), items(0, 3)))
	c.expect(items(0, 3))
	if left := len(d.secrets()); left != len(before) {
		t.Fatalf("%d Secrets of %d are left", left, len(before))
	}
	tried := server.refused.Load()
	d.check(c.pass(t.Context(), items(0, 4)))
	if now := server.refused.Load(); now != tried {
		t.Errorf("it was tried again %d times", now-tried)
	}
}

// One that must not be removed does not make the others be given up.
func TestOnlyIfAllIsDeniedItIsGivenUp(t *testing.T) {
	d := newDesk(t)
	var server refuser
	c := d.clerk(server.wrap)
	d.check(c.pass(t.Context(), items(0, 20)))
	secrets := d.secrets()
	server.refuse(http.StatusForbidden, secrets[0].Name)
	server.refuse(http.StatusTooManyRequests, secrets[1].Name)
	if err := c.ledger.Left(t.Context(), d.key, vanished); err == nil || !strings.Contains(err.Error(), secrets[1].Name) {
		t.Errorf("error %v", err)
	}
	server.refuse(0, secrets[1].Name)
	d.check(c.ledger.Left(t.Context(), d.key, vanished))
	if left := d.secrets(); len(left) != 1 || left[0].Name != secrets[0].Name {
		t.Errorf("%d Secrets are left", len(left))
	}
}
