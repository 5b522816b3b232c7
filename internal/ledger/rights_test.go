// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/test/wire"
)

// denier refuses requests for Secrets with a method, and counts all for Secrets.
type denier struct {
	method   string
	requests atomic.Int64
}

func (d *denier) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, "/secrets") {
			return next.RoundTrip(r)
		}
		d.requests.Add(1)
		if r.Method != d.method {
			return next.RoundTrip(r)
		}
		return refusal(r, http.StatusForbidden), nil
	})
}

func TestWithoutRightsOnSecretsTheRecordStaysInTheStatusAsLongAsItMay(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			d := newDesk(t)
			rights := &denier{method: method}
			c := d.clerk(rights.wrap)
			for n := range 3 {
				d.check(c.pass(t.Context(), items(0, 12, n)))
				stored, err := c.stored(t.Context())
				d.check(err)
				if diff := cmp.Diff(items(0, 12, n), stored.Items); diff != "" || stored.Chunks != nil {
					t.Fatalf("the record is not in the status alone: %+v", stored)
				}
			}
			if asked := rights.requests.Load(); asked > 2 {
				t.Errorf("%d requests for Secrets that are refused", asked)
			}
			err := c.pass(t.Context(), items(0, 60))
			if err == nil {
				err = c.pass(t.Context(), items(0, 60)) // it is looked for now
			}
			if !apierrors.IsForbidden(err) {
				t.Errorf("a record that is too large for any status: %v", err)
			}
			granted := d.clerk(nil)
			d.check(granted.pass(t.Context(), items(0, 60)))
			if stored, err := granted.stored(t.Context()); err != nil || stored.Count() != 60 || len(stored.Items) > 0 {
				t.Errorf("with the rights: %+v, %v", stored, err)
			}
		})
	}
}

func TestWhetherSecretsMayBeKeptLeavesNothingBehind(t *testing.T) {
	d := newDesk(t)
	c := d.clerk(nil)
	c.book = &Book{ledger: c.ledger, component: d.component}
	if refused, err := c.book.refused(t.Context()); refused || err != nil {
		t.Errorf("got %t, %v", refused, err)
	}
	if left := d.secrets(); len(left) > 0 {
		t.Errorf("%d Secrets are left", len(left))
	}
}

func TestWhatIsKnownOfARecordIsRecalledWithoutARequest(t *testing.T) {
	d := newDesk(t)
	requests := &denier{}
	c := d.clerk(requests.wrap)
	d.check(c.pass(t.Context(), items(0, 12)))
	stored, err := c.stored(t.Context())
	d.check(err)
	before := requests.requests.Load()
	book, known := c.ledger.Recall(d.component, stored)
	if !known || requests.requests.Load() != before {
		t.Fatalf("known: %t, after %d requests", known, requests.requests.Load()-before)
	}
	if diff := cmp.Diff(record(items(0, 12)), book.Inventory()); diff != "" {
		t.Errorf("the record has changed:\n%s", diff)
	}
	// Somebody spoils a Secret. The next write notices it, and what follows mends it.
	for _, secret := range d.secrets() {
		secret.Annotations["spoilt"] = "yes"
		d.check(d.client.Update(t.Context(), &secret))
	}
	if err := book.Record(t.Context(), record(items(0, 12, 3)), c.commit); !apierrors.IsConflict(err) {
		t.Errorf("a Secret that somebody has changed is written: %v", err)
	}
	if _, known := c.ledger.Recall(d.component, stored); known {
		t.Error("after a write that failed, the record is known")
	}
	d.check(c.pass(t.Context(), items(0, 12, 3)))
	successor := d.component
	successor.UID = "another"
	now, err := c.stored(t.Context())
	d.check(err)
	for name, recall := range map[string]func() bool{
		"an older head":        func() bool { _, known := c.ledger.Recall(d.component, stored); return known },
		"another component":    func() bool { _, known := c.ledger.Recall(successor, now); return known },
		"another process":      func() bool { _, known := d.clerk(nil).ledger.Recall(d.component, now); return known },
		"a record in a status": func() bool { _, known := c.ledger.Recall(d.component, record(items(0, 2))); return known },
	} {
		if recall() {
			t.Errorf("%s is known", name)
		}
	}
}
