// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/pkg/cluster"
)

const (
	// A watch that is not allowed or not possible is tried again after these delays,
	// one that broke sooner.
	refusedDelay, refusedLimit = time.Minute, 10 * time.Minute
	brokenDelay, brokenLimit   = time.Second, time.Minute
	// stable is how long a watch has to live before its end counts as the first failure.
	stable = 30 * time.Second
	jitter = 0.2
)

// follower watches places of a cluster.
type follower struct {
	objects *cluster.Objects
	refused time.Duration // the first delay after a refusal
}

// follow keeps up with a place until the context ends.
func (f follower) follow(ctx context.Context, at place, to *feed) {
	s := &stream{client: f.objects.Metadata(at.gvr).Namespace(at.namespace), at: at, feed: to}
	for attempt := 0; ctx.Err() == nil; attempt++ {
		begun := time.Now()
		err := s.run(ctx)
		if time.Since(begun) >= stable {
			attempt = 0
			if err == nil {
				continue // the server has ended it in good order
			}
		}
		delay := backoff.Delay(attempt, brokenDelay, brokenLimit)
		if isRefusal(err) {
			to.refused()
			delay = backoff.Delay(attempt, f.refused, refusedLimit)
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).V(1).Info("a watch ended and is tried again", "type", at.gvr.String(),
				"namespace", at.namespace, "name", at.name, "after", delay, "reason", err.Error())
		}
		pause(ctx, backoff.Jitter(delay, jitter, backoff.Random()))
	}
}

// isRefusal tells whether another attempt will hardly end otherwise.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err)
}

func pause(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
