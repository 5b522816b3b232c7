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
	v, err := readView(ctx, d.client, shopKey)
	if err != nil {
		return err
	}
	old := v.find("Service", service)
	if old == nil {
		return fmt.Errorf("Service %s/%s does not exist", shopKey.Namespace, service)
	}
	if err := d.kubectl(ctx, "", "-n", shopKey.Namespace, "delete", "service", service); err != nil {
		return err
	}
	if err := d.repaired(ctx, "Service "+service, func(v view) error {
		if now := v.find("Service", service); now == nil || now.GetUID() == old.GetUID() {
			return errors.New("it was not created again")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", shopKey.Namespace, "patch", "configmap", settings, "--type=merge", `--patch={"data":{"GREETING":"Closed"}}`); err != nil {
		return err
	}
	return d.repaired(ctx, "ConfigMap "+settings, func(v view) error {
		now := v.find("ConfigMap", settings)
		if now == nil {
			return errors.New("it does not exist")
		}
		if greeting, _, _ := unstructured.NestedString(now.Object, "data", "GREETING"); greeting != "Welcome" {
			return fmt.Errorf("its greeting is still %q", greeting)
		}
		return nil
	})
}

// repaired waits until the check finds nothing wrong, and says how long that took.
func (d *demo) repaired(ctx context.Context, what string, check func(view) error) error {
	start := time.Now()
	_, err := d.until(ctx, func(v view) error {
		if err := check(v); err != nil {
			return fmt.Errorf("%s was not repaired: %w", what, err)
		}
		return v.ready()
	})
	if err == nil {
		d.screen.say("%s was repaired after %.1f s", what, time.Since(start).Seconds())
	}
	return err
}
