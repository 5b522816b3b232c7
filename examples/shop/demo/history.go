// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
)

// goBack breaks the Shop, and waits until the last revision that was ready is applied again.
func (d *demo) goBack(ctx context.Context) error {
	if err := d.patchShop(ctx, `{"spec":{"image":"registry.example.com/shop:broken","rollbackOnFailure":true,"timeout":"5s"}}`); err != nil {
		return err
	}
	if err := d.awaitReason(ctx, "RolledBack"); err != nil {
		return err
	}
	d.screen.say("it went back, and is not Ready, because it is not as its spec says")
	if err := d.why(ctx, "revision"); err != nil {
		return err
	}
	if err := d.patchShop(ctx, `{"spec":{"image":"registry.example.com/shop:1.1","timeout":"1m"}}`); err != nil {
		return err
	}
	if err := d.untilReady(ctx, 3); err != nil {
		return err
	}
	return d.hasRun(ctx, migrationJob, 6, "for the broken image and for its correction; the rollback is no upgrade")
}

// rollBack goes back to the first revision, and to the spec again.
func (d *demo) rollBack(ctx context.Context) error {
	output, _, err := d.corbel(ctx, "", 0, "history", shopName)
	if err != nil {
		return err
	}
	if !strings.Contains(output, "Failed") || !strings.Contains(output, "kubectl-client-side-apply") {
		return errors.New("the history is not as expected")
	}
	if _, _, err := d.corbel(ctx, "", 0, "rollback", shopName, "--to", "1", "--wait"); err != nil {
		return err
	}
	if err := d.hasReplicas(ctx, 2); err != nil {
		return err
	}
	d.screen.say("the Shop has the two replicas of revision 1, whatever its spec says")
	if _, _, err := d.corbel(ctx, "", 0, "rollback", shopName, "--end", "--wait"); err != nil {
		return err
	}
	if err := d.hasReplicas(ctx, 3); err != nil {
		return err
	}
	return d.hasRun(ctx, migrationJob, 7, "for what the spec says; the rollback has no migration")
}
