// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/examples/bucket/api/v1alpha1"
	"github.com/corbel-run/corbel/examples/bucket/service"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/steps"
)

// welcoming keeps a bucket and then does one thing once: it puts an object into it, which the
// owner may delete.
type welcoming struct {
	*external.Handler[*v1alpha1.Bucket]
	service *service.Client
	client  client.Client
	reader  client.Reader
	pod     string // the uid of our pod
}

// CreateOrUpdate runs the step when the bucket is as it should be.
func (w *welcoming) CreateOrUpdate(ctx context.Context, b *v1alpha1.Bucket, commit lifecycle.Commit) (result.Result, error) {
	res, err := w.Handler.CreateOrUpdate(ctx, b, commit)
	lock := steps.NewLock(b, w.client, "Welcome", steps.WithHolder(w.pod), steps.WithReader(w.reader),
		steps.WithCommit(commit), steps.WithTransient(func(error) bool { return true }))
	if err != nil || res != result.Success || lock.Condition().Status == steps.ConditionCompleted {
		return res, err
	}
	err = lock.ExecuteContext(ctx, func(ctx context.Context, step steps.Condition) (steps.Condition, error) {
		err := w.service.Put(ctx, b.Status.External.Name, lock.IdempotencyKey(step), "welcome.txt")
		step.Status = steps.ConditionCompleted
		return step, explain(err)
	})
	return res, err
}
