// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import "context"

// Permit tells, right before an object becomes ours, whether that is still for us
// to do. The server refuses any other write that is based on something outdated,
// but nothing about an object that does not exist, or bears no mark of ours, says
// who may make it his.
type Permit func(ctx context.Context) error

type permitKey struct{}

// WithPermit returns a context in which nothing becomes ours without the permit.
// Its error is the cause of the failure of the step.
func WithPermit(ctx context.Context, permit Permit) context.Context {
	return context.WithValue(ctx, permitKey{}, permit)
}

// permitted asks for the permit, if one is needed.
func permitted(ctx context.Context) error {
	if permit, ok := ctx.Value(permitKey{}).(Permit); ok {
		return permit(ctx)
	}
	return nil
}
