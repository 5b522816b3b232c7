// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The demo shows the life of a component: it starts a real control plane and the
// example operator, and takes a Shop from a custom resource to Ready, through
// an Advert that requires it, a plan, an upgrade, mistakes, two rollbacks, a patch and two repairs, to its end without a trace.
//
// It is built next to the operator, into bin, by `make demo`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/corbel-run/corbel/test/env"
)

func main() {
	deadline := flag.Duration("deadline", 90*time.Second, "how long each step may take")
	page := flag.Bool("ui", false, "instead of the whole story, bring up what there is to see, and run corbel ui on it until Ctrl-C")
	flag.Parse()
	keep := os.Getenv("KEEP") != "" && os.Getenv("KEEP") != "0"

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us at once

	screen := newScreen(os.Stdout)
	if err := run(ctx, screen, *deadline, *page, keep); err != nil {
		screen.say("FAILED: %v", err)
		os.Exit(1)
	}
}

// run starts the control plane and the operator, plays the story, and stops everything.
func run(ctx context.Context, screen *screen, deadline time.Duration, page, keep bool) (err error) {
	screen.title("Start a control plane")
	environment, err := env.Start(ctx, env.Options{Cluster: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	screen.say("etcd, kube-apiserver, kube-controller-manager, kube-scheduler and a simulator of nodes are running")

	d, err := newDemo(ctx, environment, screen, deadline)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.operator.stop()) }()
	defer func() { d.runs.stop() }()

	if page {
		err = d.play(ctx, pageStory)
		if err == nil {
			err = d.showPage(ctx)
		}
		keep = false
	} else {
		err = d.play(ctx, story)
	}
	switch {
	case ctx.Err() != nil && page:
		return nil // that is how the page ends
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		environment.KeepLogs()
		err = fmt.Errorf("%w\nthe logs of the operator (%s) and of the control plane are in %s", err, operatorLog, environment.LogDir())
	default:
		screen.say("Done.")
	}
	if keep {
		d.leaveRunning(ctx, err)
	}
	return err
}

// leaveRunning waits for Ctrl-C.
func (d *demo) leaveRunning(ctx context.Context, err error) {
	if err != nil {
		d.screen.say("%v", err)
	}
	d.screen.say("The cluster and the operator keep running until Ctrl-C. In another terminal:")
	d.screen.text("export KUBECONFIG=%s", d.env.Kubeconfig())
	d.screen.text("%s apply -f examples/shop/demo/shop.yaml", d.env.Program("kubectl"))
	d.screen.text("bin/corbel tree -n %s %s", shopKey.Namespace, shopName)
	<-ctx.Done()
}
