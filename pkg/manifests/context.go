// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Context describes the reconcile in the context of a generator or a hook. A generator needs none
// of it: an unknown field has its zero value.
type Context struct {
	// ReconcilerName is the name of the reconciler, which is the prefix of its annotations.
	ReconcilerName string
	// Client is the client of the cluster that the dependent objects go to, with the user that writes them. It reads from the
	// server.
	Client client.Client
	// LocalClient is the client of the cluster that the component lives in, with the user of the operator. It reads from the
	// server.
	LocalClient client.Client
	// Component is the component, which must not be changed.
	Component client.Object
	// Digest is the digest of everything that the objects depend on: of the spec, the annotations,
	// the generator, and the content of references.
	Digest string
	// Revision is the revision of the component. It counts from 1, and grows when the generator,
	// its parameters, the patches of the component or the content of a reference has changed. Only
	// Upgrade tells whether it is an upgrade.
	Revision int64
	// Upgrade is set if an earlier revision of the component was applied and ready. Otherwise the revision is its installation,
	// whatever its number is.
	Upgrade bool
	// Preview is set if the objects are only shown. A generator or a hook must change nothing then.
	Preview bool
}

type contextKey struct{}

// FromContext returns the Context in a context.
func FromContext(ctx context.Context) Context {
	c, _ := ctx.Value(contextKey{}).(Context)
	return c
}

// In returns a context that holds c in place of the Context of the given one.
func (c Context) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}
