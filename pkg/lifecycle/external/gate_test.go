// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"

	"github.com/corbel-run/corbel/test/wire"
)

// toTheBank is the way to the bank through a gate: no request leaves with a context that is over.
func toTheBank(g *wire.Gate) func(ctx context.Context, request string, serve func()) error {
	return func(ctx context.Context, request string, serve func()) error {
		return g.Do(request, func() error { return direct(ctx, request, serve) })
	}
}
