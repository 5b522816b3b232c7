// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

var configMaps = Kind{Kind: "ConfigMap", Namespaced: true}

// only asks about the component of the desk: other tests run on the same server, one
// after the other. Nothing is asked at the same time.
func (d *desk) only(look func(c Component) (Fate, error)) Look {
	var mu sync.Mutex
	return func(_ context.Context, c Component) (Fate, error) {
		if c.UID != d.component.UID {
			return Elsewhere, nil
		}
		mu.Lock()
		defer mu.Unlock()
		return look(c)
	}
}

// deleteSecrets deletes all Secrets, which our finalizer holds.
func (d *desk) deleteSecrets() []corev1.Secret {
	d.Helper()
	secrets := d.secrets()
	for _, s := range secrets {
		d.check(d.client.Delete(d.Context(), &s))
	}
	return secrets
}

func TestOrphansAreFoundByANewProcess(t *testing.T) {
	d, _ := spilled(t)
	one := d.full()
	ledger := d.clerk(nil).ledger
	var asked []types.UID
	fate, failure := Elsewhere, error(nil)
	look := func(kind string) error {
		asked = nil
		return ledger.Orphans().Release(t.Context(), Kind{Kind: kind, Namespaced: true}, d.only(func(c Component) (Fate, error) {
			asked = append(asked, c.UID)
			return fate, failure
		}))
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

func TestANewProcessFreesSecretsWhoseComponentOnlySomebodyElseHolds(t *testing.T) {
	d, _ := spilled(t)
	for _, s := range d.secrets() {
		d.check(d.client.Delete(t.Context(), &s))
	}
	ledger := d.clerk(nil).ledger
	d.check(ledger.Orphans().Release(t.Context(), configMaps, d.only(func(Component) (Fate, error) { return Dying, nil })))
	if len(d.secrets()) == 0 {
		t.Fatal("the Secrets went before their component")
	}
	d.check(ledger.Left(t.Context(), d.key, vanished))
	d.nothingLeft()
}

func TestOneSecretThatCannotBeReleasedHoldsUpNoOther(t *testing.T) {
	d, _ := spilled(t)
	secrets := d.deleteSecrets()
	var server refuser
	orphans := d.clerk(server.wrap).ledger.Orphans()
	release := func() error {
		return orphans.Release(t.Context(), configMaps, d.only(func(Component) (Fate, error) { return Vanished, nil }))
	}
	server.refuse(http.StatusTooManyRequests, secrets[0].Name)
	if err := release(); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), secrets[0].Name) {
		t.Errorf("error %v", err)
	}
	if left := d.secrets(); len(left) != 1 || left[0].Name != secrets[0].Name {
		t.Errorf("%d of %d Secrets are left", len(left), len(secrets))
	}
	server.refuse(0, secrets[0].Name)
	d.check(release())
	d.nothingLeft()
}

func TestOneComponentThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	d, _ := spilled(t)
	secrets := d.deleteSecrets()
	failure, failed := errors.New("the server does not answer"), false
	err := d.clerk(nil).ledger.Orphans().Release(t.Context(), configMaps, d.only(func(Component) (Fate, error) {
		if !failed {
			failed = true
			return "", failure
		}
		return Vanished, nil
	}))
	if !errors.Is(err, failure) || !strings.Contains(err.Error(), "ConfigMap "+d.key.String()) {
		t.Errorf("error %v", err)
	}
	if left := d.secrets(); len(left) != 1 {
		t.Errorf("%d of %d Secrets are left", len(left), len(secrets))
	}
}

func TestASecretThatMustNotBeReleasedIsToldOfOnceAndLeftAlone(t *testing.T) {
	d, _ := spilled(t)
	secrets := d.deleteSecrets()
	var server refuser
	server.refuse(http.StatusForbidden, secrets[0].Name)
	orphans := d.clerk(server.wrap).ledger.Orphans()
	var told []string
	ctx := logf.IntoContext(t.Context(), funcr.New(func(_, text string) { told = append(told, text) }, funcr.Options{}))
	for range 3 {
		d.check(orphans.Release(ctx, configMaps, d.only(func(Component) (Fate, error) { return Vanished, nil })))
	}
	if left := d.secrets(); len(left) != 1 || left[0].Name != secrets[0].Name {
		t.Errorf("%d of %d Secrets are left", len(left), len(secrets))
	}
	if tried := server.refused.Load(); tried != 1 || len(told) != 1 || !strings.Contains(told[0], secrets[0].Name) {
		t.Errorf("it was tried %d times, and told: %q", tried, told)
	}
}

func TestWhatIsKnownIsNotReplacedByWhatAnOrphanTells(t *testing.T) {
	d := newDesk(t)
	c := d.clerk(nil)
	d.check(c.pass(t.Context(), items(0, 20)))
	stored, err := c.stored(t.Context())
	d.check(err)
	d.deleteSecrets()
	d.check(c.ledger.Orphans().Release(t.Context(), configMaps, d.only(func(Component) (Fate, error) { return Dying, nil })))
	if _, known := c.ledger.Recall(d.component, stored); !known {
		t.Error("the record is not known any more")
	}
}

// Whoever may create Secrets can say in one of them what he likes about its owner.
func TestNobodyAsksForAnOwnerThatCannotBe(t *testing.T) {
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
			d := newDesk(t)
			d.component.UID = types.UID("forged-" + d.key.Namespace)
			d.component.Name = tc.name
			if d.component.Namespace = tc.namespace; tc.namespace == here {
				d.component.Namespace = d.key.Namespace
			}
			l := d.clerk(nil).ledger
			d.check(d.client.Create(t.Context(), l.newSecret(d.component, d.key.Namespace, l.naming(d.component).name(1, 0), 1, nil)))
			d.deleteSecrets()
			asked := false
			d.check(l.Orphans().Release(t.Context(), Kind{Kind: "ConfigMap", Namespaced: tc.namespaced}, d.only(func(c Component) (Fate, error) {
				asked = true
				if c != d.component {
					t.Errorf("asked about %+v", c)
				}
				return Elsewhere, nil
			})))
			if asked != tc.asked {
				t.Errorf("asked: %t", asked)
			}
		})
	}
}

func TestManyErrorsAreNamedByAFew(t *testing.T) {
	if err := several([]error{nil, nil}); err != nil {
		t.Errorf("no errors: %v", err)
	}
	last := errors.New("the last")
	errs := []error{nil, last}
	for n := range 1000 {
		errs = append([]error{fmt.Errorf("number %d", n)}, errs...)
	}
	err := several(errs)
	if want := "number 999; number 998; number 997; and 998 more errors"; err.Error() != want || !errors.Is(err, last) {
		t.Errorf("%s", err)
	}
}
