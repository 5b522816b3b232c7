// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Claims are the objects that owners wait for because others own them. If an
// owner drops an object that another waits for, the object is left to that one; it
// would otherwise be deleted and created anew. Claims live as long as the process,
// and half an hour at most if they are not repeated: after a restart they are known
// again once everybody has come by. Share them only among Reconcilers of one
// identity: whoever may claim an object keeps it from being deleted.
//
// The zero value is ready to use, by several goroutines at once.
type Claims struct {
	lock sync.Mutex
	// keys are what each owner waits for, by cluster.
	keys map[types.UID]map[plan.OwnerRef]claim
}

// claim is what one owner waits for.
type claim struct {
	keys []plan.Key
	at   time.Time
}

// claimLife is how long a claim is believed. An owner who still waits comes by
// before; one who was taken away by force does not.
const claimLife = 30 * time.Minute

// set replaces what the owner waits for.
func (c *Claims) set(target types.UID, owner plan.OwnerRef, keys []plan.Key, now time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(keys) == 0 {
		delete(c.keys[target], owner)
		return
	}
	if c.keys == nil {
		c.keys = map[types.UID]map[plan.OwnerRef]claim{}
	}
	if c.keys[target] == nil {
		c.keys[target] = map[plan.OwnerRef]claim{}
	}
	c.keys[target][owner] = claim{keys: keys, at: now}
}

// of returns what others than the owner wait for, and who does.
func (c *Claims) of(target types.UID, owner plan.OwnerRef, now time.Time) map[plan.Key]string {
	c.lock.Lock()
	defer c.lock.Unlock()
	claimed := map[plan.Key]string{}
	for other, claim := range c.keys[target] {
		if other.SameOwner(owner) || now.Sub(claim.at) >= claimLife {
			continue
		}
		for _, key := range claim.keys {
			if title := other.Title(); claimed[key] == "" || title < claimed[key] {
				claimed[key] = title
			}
		}
	}
	return claimed
}

// claimed returns the objects that the outcome waits for because they belong to
// somebody else, and that would be taken over if they belonged to nobody.
func claimed(in plan.Input, outcome Outcome) []plan.Key {
	adoption := adoptionOf(in)
	var keys []plan.Key
	for _, wait := range outcome.Waiting {
		if wait.Reason == plan.WaitOwner && adoption()[wait.Key] == v1alpha1.AdoptionPolicyIfUnowned {
			keys = append(keys, wait.Key)
		}
	}
	return keys
}

// adoptionOf returns the adoption policies of the wanted objects. Only conflicts of
// ownership ask for them.
func adoptionOf(in plan.Input) func() map[plan.Key]v1alpha1.AdoptionPolicy {
	return sync.OnceValue(func() map[plan.Key]v1alpha1.AdoptionPolicy {
		policies := make(map[plan.Key]v1alpha1.AdoptionPolicy, len(in.Desired))
		for _, d := range in.Desired {
			policies[d.Key] = d.Policies.Adoption
		}
		return policies
	})
}
