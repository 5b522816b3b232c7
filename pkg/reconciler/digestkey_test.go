// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestAllDigestsInAnInventoryDependOnTheDigestKey(t *testing.T) {
	b := newBench(t)
	b.engine = newEngine(t, reconciler.ReconcilerOptions{DigestKey: []byte{}})
	b.mustApply(config("a", "1"))
	plain := b.inventory.Items[0]
	if plain.Seal != "" {
		t.Errorf("sealed without a key: %+v", plain)
	}
	if plain.Digest == "" || plain.ObservedHash == "" || plain.AppliedHash == "" {
		t.Fatalf("a digest is missing: %+v", plain)
	}
	b.engine = newEngine(t, reconciler.ReconcilerOptions{DigestKey: []byte("0123456789abcdef")})
	outcome := b.mustApply(config("a", "1"))
	keyed := b.inventory.Items[0]
	if keyed.Digest == plain.Digest || keyed.ObservedHash == plain.ObservedHash || keyed.AppliedHash == plain.AppliedHash {
		t.Errorf("a digest does not depend on the key:\n%+v\n%+v", plain, keyed)
	}
	if keyed.Seal == "" {
		t.Errorf("not sealed: %+v", keyed)
	}
	if outcome = b.mustApply(config("a", "1")); len(outcome.Steps) > 0 {
		t.Errorf("steps at rest: %v", outcome.Steps)
	}
}
