// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed patch.yaml
var patchManifest string

// patchCache changes a dependent object through the Shop, at the second attempt.
func (d *demo) patchCache(ctx context.Context) error {
	const misspelled = "corner-cahce"
	if err := d.patchShopWith(ctx, strings.Replace(patchManifest, "corner-cache", misspelled, 1)); err != nil {
		return err
	}
	if err := d.awaitReason(ctx, "SpecInvalid"); err != nil {
		return err
	}
	d.screen.say("the name was misspelled")
	if err := d.why(ctx, misspelled); err != nil {
		return err
	}

	if err := d.patchShopWith(ctx, patchManifest); err != nil {
		return err
	}
	if err := d.untilReady(ctx, 3); err != nil {
		return err
	}
	const limits = "{.spec.template.spec.containers[0].resources.limits}"
	cache := shopKey.Name + "-cache"
	output, err := d.ask(ctx, "", "-n", shopKey.Namespace, "get", "deployment", cache, "--output=jsonpath="+limits)
	if err != nil {
		return err
	}
	if want := `{"memory":"64Mi"}`; output != want {
		return fmt.Errorf("Deployment %s has the limits %q, want %s", cache, output, want)
	}
	return d.hasRun(ctx, migrationJob, 8, "the change with the wrong patch was none")
}

// patchShopWith changes the Shop with a file, as a user would do.
func (d *demo) patchShopWith(ctx context.Context, manifest string) error {
	return d.kubectl(ctx, manifest, "-n", shopKey.Namespace, "patch", "shop", shopKey.Name, "--type=merge", "--patch-file=/dev/stdin")
}
