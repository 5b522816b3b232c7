// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

func TestSecretsDoNotOutliveAComponentThatIsTakenAwayByForce(t *testing.T) {
	t.Run("the process knows it and is told", func(t *testing.T) {
		d := newDesk(t)
		c := d.clerk(nil)
		d.check(c.pass(t.Context(), items(0, 20)))
		c.ledger.Gone(t.Context(), d.key)
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

func TestOrphansAreFoundByANewProcess(t *testing.T) {
	d, _ := spilled(t)
	one := d.full()
	ledger := d.clerk(nil).ledger
	var asked []types.UID
	fate, failure := Elsewhere, error(nil)
	look := func(kind string) error {
		asked = nil
		return ledger.Orphans(t.Context(), "", kind, func(_ context.Context, c Component) (Fate, error) {
			// Other tests run on the same server, one after the other.
			if c.UID != d.component.UID {
				return Elsewhere, nil
			}
			asked = append(asked, c.UID)
			return fate, failure
		})
	}
	d.check(look("ConfigMap"))
	if len(asked) > 0 {
		t.Error("a Secret that nobody deletes was asked about")
	}
	d.check(d.client.Delete(t.Context(), one))
	d.check(look("Shop"))
	if len(asked) > 0 {
		t.Error("a component of another kind was asked about")
	}
	d.check(look("ConfigMap"))
	failure = errors.New("the server does not answer")
	if err := look("ConfigMap"); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	before := len(d.secrets())
	fate, failure = Vanished, nil
	d.check(look("ConfigMap"))
	if left := len(d.secrets()); len(asked) != 1 || left != before-1 {
		t.Errorf("asked %d times; %d Secrets of %d are left", len(asked), left, before)
	}
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
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if refused.Load() && r.Method == http.MethodPatch {
				return nil, errors.New("the line is cut")
			}
			return next.RoundTrip(r)
		})
	})
	d.check(c.pass(t.Context(), items(0, 20)))
	vanished := func(context.Context, Component) (Fate, error) { return Vanished, nil }
	refused.Store(true)
	if err := c.ledger.Left(t.Context(), d.key, vanished); err == nil {
		t.Error("it is not said that Secrets are left")
	}
	refused.Store(false)
	d.check(c.ledger.Left(t.Context(), d.key, vanished))
	d.nothingLeft()
}

func TestANewProcessFreesSecretsWhoseComponentOnlySomebodyElseHolds(t *testing.T) {
	d, _ := spilled(t)
	for _, s := range d.secrets() {
		d.check(d.client.Delete(t.Context(), &s))
	}
	ledger := d.clerk(nil).ledger
	d.check(ledger.Orphans(t.Context(), "", "ConfigMap", func(_ context.Context, c Component) (Fate, error) {
		if c.UID == d.component.UID {
			return Dying, nil
		}
		return Elsewhere, nil
	}))
	if len(d.secrets()) == 0 {
		t.Fatal("the Secrets went before their component")
	}
	d.check(ledger.Left(t.Context(), d.key, func(context.Context, Component) (Fate, error) { return Vanished, nil }))
	d.nothingLeft()
}
