// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

func TestAClaimIsOfOthersInTheSameClusterAndNotForever(t *testing.T) {
	now := time.Unix(1000, 0)
	key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	a, b := plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "a"}, plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "b"}
	var claims Claims
	expect := func(what string, owner plan.OwnerRef, at time.Time, want string) {
		t.Helper()
		if got := claims.of("cluster", owner, at)[key]; got != want {
			t.Errorf("%s: claimed by %q, want %q", what, got, want)
		}
	}
	expect("nobody", a, now, "")
	claims.set("cluster", b, []plan.Key{key}, now)
	expect("another", a, now, "Shop shop/b")
	expect("the owner itself", b, now, "")
	expect("repeated in time", a, now.Add(claimLife-time.Second), "Shop shop/b")
	expect("not repeated", a, now.Add(claimLife), "")
	if got := claims.of("another cluster", a, now); len(got) > 0 {
		t.Errorf("claims in another cluster: %v", got)
	}
	claims.set("cluster", b, nil, now)
	expect("given up", a, now, "")
}
