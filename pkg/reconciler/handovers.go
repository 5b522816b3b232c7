// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// handovers are the objects that owners wait for because other owners have them. If an
// owner drops an object that another one waits for, the object is handed over to that one; it
// would otherwise be deleted and created again. They live as long as the process: after a
// restart they are known again once every owner was reconciled. The zero value is ready to
// use. It is safe for concurrent use.
type handovers struct {
	lock    sync.Mutex
	waiting map[plan.OwnerRef]waitingOwner
}

// waitingOwner is an owner with the objects that it waits for.
type waitingOwner struct {
	keys []plan.Key
	at   time.Time
}

// waitingLife is for how long an owner counts as waiting. An owner that still waits is reconciled
// before; an owner that was removed by force is not.
const waitingLife = 30 * time.Minute

// setWaiting replaces the keys that the owner waits for.
func (h *handovers) setWaiting(owner plan.OwnerRef, keys []plan.Key, now time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if len(keys) == 0 {
		delete(h.waiting, owner)
		return
	}
	if h.waiting == nil {
		h.waiting = map[plan.OwnerRef]waitingOwner{}
	}
	h.waiting[owner] = waitingOwner{keys: keys, at: now}
}

// waitedFor returns the objects that other owners than this one wait for, each with the
// title of an owner that does.
func (h *handovers) waitedFor(owner plan.OwnerRef, now time.Time) map[plan.Key]string {
	h.lock.Lock()
	defer h.lock.Unlock()
	titles := map[plan.Key]string{}
	for other, waiting := range h.waiting {
		if other.SameOwner(owner) || now.Sub(waiting.at) >= waitingLife {
			continue
		}
		for _, key := range waiting.keys {
			if title := other.Title(); titles[key] == "" || title < titles[key] {
				titles[key] = title
			}
		}
	}
	return titles
}

// handoverKeys returns the objects that the outcome waits for because they belong to
// another owner, and that would be adopted if they had none.
func handoverKeys(in plan.Input, outcome Outcome) []plan.Key {
	adoption := adoptionOf(in)
	var keys []plan.Key
	for _, wait := range outcome.Waiting {
		if wait.Reason != report.WaitOwner {
			continue
		}
		if adopts := vocabulary.Adoptions[adoption()[plan.Key(wait.Key)]]; adopts.Unowned && !adopts.Owned {
			keys = append(keys, plan.Key(wait.Key))
		}
	}
	return keys
}

// adoptionOf returns the adoption policies of the desired objects. Only conflicts of
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
