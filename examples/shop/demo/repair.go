// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// repair breaks what the operator keeps, behind its back.
func (d *demo) repair(ctx context.Context) error {
	service, settings := shopKey.Name+"-web", shopKey.Name+"-settings"
	old, err := d.object(ctx, "v1", "Service", service)
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", shopKey.Namespace, "delete", "service", service); err != nil {
		return err
	}
	if err := d.repaired(ctx, "Service "+service, func() error {
		now, err := d.object(ctx, "v1", "Service", service)
		if err == nil && now.GetUID() == old.GetUID() {
			err = errors.New("it was not created again")
		}
		return err
	}); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", shopKey.Namespace, "patch", "configmap", settings, "--type=merge", `--patch={"data":{"GREETING":"Closed"}}`); err != nil {
		return err
	}
	return d.repaired(ctx, "ConfigMap "+settings, func() error {
		now, err := d.object(ctx, "v1", "ConfigMap", settings)
		if err != nil {
			return err
		}
		if greeting, _, _ := unstructured.NestedString(now.Object, "data", "GREETING"); greeting != "Welcome" {
			return fmt.Errorf("its greeting is still %q", greeting)
		}
		return nil
	})
}

// repaired waits until the check finds nothing wrong and the Shop is Ready, and says how long that took.
func (d *demo) repaired(ctx context.Context, what string, check func() error) error {
	start := time.Now()
	err := d.poll(ctx, func() error {
		if err := check(); err != nil {
			return fmt.Errorf("%s was not repaired: %w", what, err)
		}
		shop, err := d.shop(ctx)
		if err == nil && !shop.Status.IsReady() {
			err = errors.New("the Shop is not Ready")
		}
		return err
	})
	if err == nil {
		d.screen.say("%s was repaired after %.1f s", what, time.Since(start).Seconds())
	}
	return err
}
