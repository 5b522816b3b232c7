// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Claims are the objects that owners wait for because others own them. If an
// owner drops an object that another waits for, the object is left to that one; it
// would otherwise be deleted and created anew. Claims live as long as the process:
// after a restart they are known again once everybody has come by.
//
// The zero value is ready to use, by several goroutines at once.
type Claims struct {
	lock sync.Mutex
	// keys are what each owner waits for, by cluster.
	keys map[types.UID]map[plan.OwnerRef][]plan.Key
}

// set replaces what the owner waits for.
func (c *Claims) set(target types.UID, owner plan.OwnerRef, keys []plan.Key) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(keys) == 0 {
		delete(c.keys[target], owner)
		return
	}
	if c.keys == nil {
		c.keys = map[types.UID]map[plan.OwnerRef][]plan.Key{}
	}
	if c.keys[target] == nil {
		c.keys[target] = map[plan.OwnerRef][]plan.Key{}
	}
	c.keys[target][owner] = keys
}

// of returns what others than the owner wait for, and who does.
func (c *Claims) of(target types.UID, owner plan.OwnerRef) map[plan.Key]string {
	c.lock.Lock()
	defer c.lock.Unlock()
	claimed := map[plan.Key]string{}
	for other, keys := range c.keys[target] {
		if other.SameOwner(owner) {
			continue
		}
		for _, key := range keys {
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
	adoptable := map[plan.Key]bool{}
	for _, d := range in.Desired {
		adoptable[d.Key] = d.Policies.Adoption == v1alpha1.AdoptionPolicyIfUnowned
	}
	var keys []plan.Key
	for _, wait := range outcome.Waiting {
		if wait.Reason == plan.WaitOwner && adoptable[wait.Key] {
			keys = append(keys, wait.Key)
		}
	}
	return keys
}
