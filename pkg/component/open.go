// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// opener finds out what a reconcile of a component starts with: its configuration, what its spec refers to, and a connection to
// its target cluster. It is immutable.
type opener struct {
	self      identity.Operator
	settings  settings
	author    authorType
	code      *userCode
	local     client.Client // reads from the server
	mapper    meta.RESTMapper
	digestKey digestKey
	targets   targetClusters
	watches   *targets.Watches // may be nil
	now       func() time.Time
}

// digestKey is targets.DigestKey.
type digestKey interface {
	Get(ctx context.Context) ([]byte, error)
}

// targetClusters is targets.Targets.
type targetClusters interface {
	Connect(access target.Access, component client.ObjectKey) (targets.Connection, error)
	SetEngine(owner reconciler.Owner, connection targets.Connection)
	ForgetOwner(owner reconciler.Owner)
}

// resolve returns the configuration and the access of a component, and loads its references. The error is an InvalidError with all
// mistakes in the component. Mistakes are the ones that the caller has found. Absent says which references cannot be loaded.
func (o *opener) resolve(ctx context.Context, obj Component, mistakes error, load func(context.Context, Component) references.Absence) (resolved resolvedConfig, access target.Access, absent, err error) {
	resolved, configErr := resolveConfig(obj, o.settings)
	_, suspendErr := o.suspensionOf(obj)
	found, _ := o.author.finder.Find(obj.GetSpec())
	if err := errors.Join(configErr, suspendErr, mistakes, references.Mistakes(found, obj.GetNamespace())); err != nil {
		return resolved, access, nil, &verdict.InvalidError{Err: o.self.About(obj, err)}
	}
	absent = load(ctx, obj).Retry()
	if access, err = accessOf(obj, o.settings); err != nil {
		return resolved, access, absent, cmp.Or(absent, error(&verdict.InvalidError{Err: o.self.About(obj, err)}))
	}
	return resolved, access, absent, nil
}

// basicContext is what all hooks get.
func (o *opener) basicContext(ctx context.Context) context.Context {
	known := manifests.FromContext(ctx)
	known.ReconcilerName, known.LocalClient = o.self.Name, confidential.NotingClient(o.local)
	return known.In(ctx)
}
