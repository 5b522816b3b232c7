// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed advert.yaml
var advertManifest string

// webAddress is the output address of the Shop.
const webAddress = "corner-web.market.svc:80"

// advertise creates an Advert with the address of the Shop.
func (d *demo) advertise(ctx context.Context) error {
	output, _, err := d.corbel(ctx, "", 0, "outputs", shopName)
	if err != nil {
		return err
	}
	if !strings.Contains(output, webAddress) {
		return fmt.Errorf("the outputs do not have the address %s", webAddress)
	}
	if err := d.kubectl(ctx, advertManifest, "apply", "-f", "-"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", shopKey.Namespace, "wait", "--for=condition=Ready", "--timeout=1m", "advert/sale"); err != nil {
		return err
	}
	address, err := d.ask(ctx, "", "-n", shopKey.Namespace, "get", "configmap", "sale-advert", "--output=jsonpath={.data.address}")
	if err == nil && address != webAddress {
		err = fmt.Errorf("the Advert has the address %q, want %s", address, webAddress)
	}
	return err
}
