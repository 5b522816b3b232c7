// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// plan shows what the operator would do for a manifest of the Shop. The server adds the defaults of the
// definition to it, in a dry run.
func (d *demo) plan(ctx context.Context, manifest string) error {
	d.screen.text("$ kubectl apply -f edited.yaml --dry-run=server -o json | shop plan")
	var stderr bytes.Buffer
	completed := exec.CommandContext(ctx, d.env.Program("kubectl"), "apply", "-f", "-", "--dry-run=server", "-o", "json")
	completed.Env, completed.Stdin, completed.Stderr = d.kubeEnv, strings.NewReader(manifest), &stderr
	d.env.Adopt(completed)
	edited, err := completed.Output()
	if err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, strings.TrimSpace(stderr.String()))
	}
	command := exec.CommandContext(ctx, filepath.Join(d.root, "bin", "shop"), "plan")
	command.Env, command.Stdin, command.Stderr = d.kubeEnv, bytes.NewReader(edited), &stderr
	d.env.Adopt(command)
	printed, err := command.Output()
	if err != nil {
		return fmt.Errorf("plan: %w\n%s", err, strings.TrimSpace(stderr.String()))
	}
	text := strings.TrimSpace(string(printed))
	d.screen.text("%s", text)
	if !strings.Contains(text, `spec.replicas: "2" -> "3"`) {
		return errors.New("the plan does not say that the replicas change")
	}
	return nil
}

// goBack breaks the Shop, and waits until the last revision that was ready is applied again.
func (d *demo) goBack(ctx context.Context) error {
	if err := d.patchShop(ctx, `{"spec":{"image":"registry.example.com/shop:broken","rollbackOnFailure":true,"timeout":"5s"}}`); err != nil {
		return err
	}
	var message string
	v, err := d.until(ctx, func(v view) error {
		if v.shop == nil {
			return v.ready()
		}
		_, reason, text := v.shop.Status.GetState()
		if message = text; reason != v1alpha1.ReasonRolledBack {
			return fmt.Errorf("the Shop is not rolled back, but %s: %s", reason, text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.screen.endStep(v)
	d.screen.say("condition Ready is False, because the Shop is not as its spec says: %s", message)
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
	const history = `{range .status.history[*]}{.revision}{"\t"}{.result}{"\t"}{.changedBy}{"\t"}{.source.chart}{"-"}{.source.version}{"\n"}{end}`
	shop := []string{"-n", shopKey.Namespace, "get", "shop", shopKey.Name, "--output=jsonpath=" + history}
	output, err := d.ask(ctx, "", shop...)
	if err != nil {
		return err
	}
	if !strings.Contains(output, "Failed") || !strings.Contains(output, "1\tReady\tkubectl-client-side-apply") {
		return fmt.Errorf("the history is not as expected:\n%s", output)
	}
	annotate := func(annotation string) error {
		return d.kubectl(ctx, "", "-n", shopKey.Namespace, "annotate", "shop", shopKey.Name, annotation)
	}
	if err := annotate("shop.example.com/rollback-to=1"); err != nil {
		return err
	}
	if err := d.untilReady(ctx, 2); err != nil {
		return err
	}
	d.screen.say("the Shop has the two replicas of revision 1, whatever its spec says, until the annotation is removed")
	if err := annotate("shop.example.com/rollback-to-"); err != nil {
		return err
	}
	if err := d.untilReady(ctx, 3); err != nil {
		return err
	}
	return d.hasRun(ctx, migrationJob, 7, "for what the spec says; the rollback has no migration")
}
