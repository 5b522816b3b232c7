// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Upgrade rehearses the upgrade of an operator on a real control plane. An operator of an earlier version brings
// components into many states. Then it is replaced by one of a later version, which renders the same objects: it must
// reconcile all components, write nothing but their records, and leave their revisions and conditions as they are. At
// last, it must change one component and delete all.
//
// hack/rehearse-upgrade.sh makes the two operators, of the chart in this folder.
//
// Usage: upgrade BEFORE AFTER, two folders with the program "operator" and the chart "deploy"
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/env"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: upgrade BEFORE AFTER")
		os.Exit(2)
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "upgrade: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// rehearsal is a control plane with an operator.
type rehearsal struct {
	env      *env.Environment
	client   client.Client
	operator *operator
}

func run(ctx context.Context, before, after string) (err error) {
	e, err := env.Start(ctx, env.Options{Cluster: true, AuditLog: true, AuditBodies: true})
	if err != nil {
		return err
	}
	r := &rehearsal{env: e}
	defer func() {
		// An operator that has ended by itself is reported once.
		if err = cmp.Or(err, r.operator.stop()); err != nil {
			e.KeepLogs()
		}
		err = errors.Join(err, e.Stop())
	}()
	if r.client, err = client.New(e.Config(), client.Options{}); err != nil {
		return err
	}

	fmt.Println("The earlier operator brings components into their states.")
	if r.operator, err = r.start(ctx, before, "before"); err != nil {
		return err
	}
	if err := each(ctx, r.prepare); err != nil {
		return err
	}
	if err := r.operator.stop(); err != nil {
		return err
	}
	statuses, err := r.statuses(ctx)
	if err != nil {
		return err
	}

	fmt.Println("The later operator takes the components over.")
	position, err := e.AuditPosition(ctx)
	if err != nil {
		return err
	}
	if r.operator, err = r.start(ctx, after, "after"); err != nil {
		return err
	}
	for _, wait := range []func() error{
		func() error { return r.reconcileAll(ctx, "") },
		func() error { return r.reconcileAll(ctx, "again") },
		func() error {
			if err := r.watch(ctx, position); err != nil {
				return err
			}
			return r.compare(ctx, statuses)
		},
	} {
		waitErr := wait()
		if position, err = r.judgeSince(ctx, position); waitErr != nil || err != nil {
			return errors.Join(err, waitErr)
		}
	}

	fmt.Println("The later operator changes a component and deletes all.")
	if err := r.change(ctx); err != nil {
		return err
	}
	if err := each(ctx, r.remove); err != nil {
		return err
	}
	// Those in a namespace that is deleted go with it, a moment later.
	if err := r.await(ctx, patience, func() error { return r.nothingLeft(ctx) }); err != nil {
		return err
	}
	fmt.Printf("The later operator has taken over %d components without a write to their objects, has changed one, and has deleted all.\n", len(states))
	return nil
}

// each calls a function for all states at the same time.
func each(ctx context.Context, f func(context.Context, state) error) error {
	errs := make([]error, len(states))
	var group sync.WaitGroup
	for n, s := range states {
		group.Go(func() {
			if err := f(ctx, s); err != nil {
				errs[n] = fmt.Errorf("%s: %w", s.name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// statuses returns the statuses of all components.
func (r *rehearsal) statuses(ctx context.Context) (map[string]component.Status, error) {
	statuses := map[string]component.Status{}
	for _, s := range states {
		site, err := r.site(ctx, s)
		if err != nil {
			return nil, err
		}
		if statuses[s.name], err = statusOf(site); err != nil {
			return nil, err
		}
	}
	return statuses, nil
}
