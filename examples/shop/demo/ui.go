// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pageStory is what there is to see on the page of corbel ui: a Shop with two revisions, and one that does not get ready.
var pageStory = []step{
	story[0], // the operator
	{"Create a Shop", (*demo).create},
	{"Scale it to three replicas: its second revision", (*demo).scale},
	{"Create another Shop, which fails: it needs a type that belongs to the first one", (*demo).createOther},
}

// createOther creates a Shop that does not get ready.
func (d *demo) createOther(ctx context.Context) error {
	return d.kubectl(ctx, strings.Replace(shopManifest, "name: "+shopKey.Name, "name: stall", 1), "apply", "-f", "-")
}

// showPage runs corbel ui until Ctrl-C.
func (d *demo) showPage(ctx context.Context) error {
	d.screen.title("Show the components in the browser until Ctrl-C")
	command := exec.CommandContext(ctx, filepath.Join(d.root, "bin", "corbel"), "ui", "--write", "-A")
	command.Env, command.Dir = d.kubeEnv, d.root
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 5 * time.Second
	d.env.Adopt(command)
	if err := command.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("corbel ui: %w", err)
	}
	return nil
}
