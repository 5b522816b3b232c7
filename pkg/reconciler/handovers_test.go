// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

func TestAnOwnerWaitsForObjectsOfOthersAndNotForever(t *testing.T) {
	now := time.Unix(1000, 0)
	key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	a, b := plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "a"}, plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "b"}
	var h handovers
	expect := func(what string, owner plan.OwnerRef, at time.Time, want string) {
		t.Helper()
		if got := h.waitedFor(owner, at)[key]; got != want {
			t.Errorf("%s: %q waits for it, want %q", what, got, want)
		}
	}
	expect("no other owner", a, now, "")
	h.setWaiting(b, []plan.Key{key}, now)
	expect("another", a, now, "Shop shop/b")
	expect("the owner itself", b, now, "")
	expect("repeated in time", a, now.Add(waitingLife-time.Second), "Shop shop/b")
	expect("not repeated", a, now.Add(waitingLife), "")
	h.setWaiting(b, nil, now)
	expect("given up", a, now, "")
}
