// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/corbel-run/corbel/examples/bucket/api/v1alpha1"
	"github.com/corbel-run/corbel/examples/bucket/service"
	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/pkg/result"
)

// buckets says how a Bucket is kept at the service.
type buckets struct{ service *service.Client }

// Observe looks by the id, or by the key as long as no id is on record.
func (c *buckets) Observe(ctx context.Context, b *v1alpha1.Bucket) (external.Observation, error) {
	find, what := c.service.Get, b.Status.External.Name
	if what == "" {
		find, what = c.service.Find, b.Status.External.Token
	}
	found, err := find(ctx, what)
	if err != nil || found == nil {
		return external.Observation{}, err
	}
	b.Status.Quota = found.Quota
	return external.Observation{Exists: true, UpToDate: found.Quota == b.Spec.Quota, Name: found.ID}, nil
}

// Create makes one bucket, however often it is called with one token.
func (c *buckets) Create(ctx context.Context, b *v1alpha1.Bucket) (external.Operation, error) {
	made, err := c.service.Create(ctx, b.Status.External.Token, b.Spec.Quota)
	if service.IsInvalid(err) {
		err = external.Refused(err)
	}
	return external.Operation{Name: made.ID}, explain(err)
}

// Update changes what can be changed.
func (c *buckets) Update(ctx context.Context, b *v1alpha1.Bucket) (external.Operation, error) {
	return external.Operation{}, explain(c.service.SetQuota(ctx, b.Status.External.Name, b.Spec.Quota))
}

// Delete deletes the bucket with the id on record, and no other.
func (c *buckets) Delete(ctx context.Context, b *v1alpha1.Bucket) (external.Operation, error) {
	return external.Operation{}, explain(c.service.Delete(ctx, b.Status.External.Name))
}

// explain says what an error means: an invalid request stays invalid until the object changes.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case service.IsInvalid(err):
		return result.NewError(err, result.SeverityError, "Invalid")
	default:
		return &result.Error{Severity: result.SeverityWarning, Reason: "ServiceFailed", Retry: result.RetryFast, Err: err}
	}
}
