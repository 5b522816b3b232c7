// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	gone, failure := false, error(nil)
	look := func(kind string) error {
		asked = nil
		return ledger.Orphans(t.Context(), "", kind, func(_ context.Context, c Component) (bool, error) {
			// Other tests run on the same server, one after the other.
			if c.UID == d.component.UID {
				asked = append(asked, c.UID)
			}
			return gone && c.UID == d.component.UID, failure
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
	gone, failure = true, nil
	d.check(look("ConfigMap"))
	if left := len(d.secrets()); len(asked) != 1 || left != before-1 {
		t.Errorf("asked %d times; %d Secrets of %d are left", len(asked), left, before)
	}
}
