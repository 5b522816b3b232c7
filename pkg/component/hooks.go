// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// ClientFromContext returns a client for the deployment target: the cluster and
// the user that the dependent objects are written as. It reads from the
// server. It is there in generators and in all hooks but the post-read hooks;
// elsewhere there is an error. What else a context holds, manifests.FromContext returns.
func ClientFromContext(ctx context.Context) (client.Client, error) {
	if c := manifests.FromContext(ctx).Client; c != nil {
		return c, nil
	}
	return nil, errors.New("the context holds no client of the target cluster")
}

// reportSlow calls render, and writes into the status what it works on if it takes long. A verdict about this
// generation stays, but for one that an earlier revision is ready: the same rendering may lead to it again.
func (p *applier) reportSlow(ctx context.Context, obj Component, commit session.Commit, render func(context.Context) error) error {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, at := renders.WithProgress(ctx)
	var refused error
	ctx = guard.WithSlow(ctx, p.code.slowAfter, func(passed time.Duration) {
		state, _, _ := obj.GetStatus().GetState()
		if obj.GetStatus().ObservedGeneration == obj.GetGeneration() && state != v1alpha1.StatePending && state != v1alpha1.StateProcessing || refused != nil {
			return
		}
		message := fmt.Sprintf("the manifests have been rendered for %s: %s", passed.Round(time.Second), cmp.Or(at(), "generator"))
		conclude.SetVerdict(obj, verdict.Evaluate(verdict.Facts{Waiting: message}))
		if refused = commit(outer); refused != nil {
			cancel()
		}
	})
	err := render(ctx)
	return cmp.Or(refused, err)
}
