// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// InRevision adds to a context what generators and the hooks around apply and delete get. The digest is that of the component.
func InRevision(ctx context.Context, t targets.Connection, component string, status *Status) context.Context {
	if t.Target != nil {
		ctx = renders.WithTarget(ctx, t.Target)
	}
	known := manifests.FromContext(ctx)
	if t.Client != nil {
		known.Client = confidential.NotingClient(t.Client)
	}
	known.Digest, known.Revision, known.Upgrade = component, status.Revision, !status.Installs()
	return known.In(ctx)
}

// InPreview tells generators and hooks that objects are only shown.
func InPreview(ctx context.Context) context.Context {
	known := manifests.FromContext(ctx)
	known.Preview = true
	return known.In(ctx)
}
