// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/lifecycle/external"
)

// policyDuringThePass sets the policy after the reconcile has read the vault and before it acts.
func policyDuringThePass(b *branch, c *clumsy, policy string) {
	done := false
	c.look = func(ctx context.Context, v *vault) (external.Observation, error) {
		seen, err := c.teller.Observe(ctx, v)
		if !done {
			done = true
			b.change(func(v *vault) { v.Annotations = map[string]string{"test.corbel.run/management-policy": policy} })
		}
		return seen, err
	}
}

func TestARoomThatIsToStayStaysThoughItsDeletionHasStarted(t *testing.T) {
	for _, policy := range []string{"detach-on-delete", "skip"} {
		t.Run(policy, func(t *testing.T) {
			b, c := newClumsy(t, external.Options{})
			_, _, _ = b.reconcile()
			// The answer of the Create was not recorded, so the deletion has something to commit.
			b.changeStatus(func(v *vault) {
				v.Status.External.Phase, v.Status.External.Name = external.PhaseCreating, ""
				v.Status.External.Since = &metav1.MicroTime{Time: b.now}
			})
			b.delete()
			policyDuringThePass(b, c, policy)
			for range 3 {
				if _, _, err := b.reconcile(); err != nil {
					t.Error(err)
				}
			}
			if _, there, _ := b.bank.count(); there != 1 {
				t.Errorf("%d rooms are left", there)
			}
			if b.get() != nil {
				t.Error("the vault is not gone")
			}
		})
	}
}

func TestARoomThatIsToBeLeftAloneIsNotChanged(t *testing.T) {
	b, c := newClumsy(t, external.Options{})
	_, _, _ = b.reconcile()
	b.change(func(v *vault) { v.Spec.Size = 9 })
	b.changeStatus(func(v *vault) { v.Status.External.Name = "" }) // so there is something to commit
	policyDuringThePass(b, c, "skip")
	for range 2 {
		if _, _, err := b.reconcile(); err != nil {
			t.Error(err)
		}
	}
	if sizes := b.bank.sizes(); len(sizes) != 1 || sizes[0] != 1 {
		t.Errorf("rooms %v", sizes)
	}
}
