// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Output is a value that a desired object publishes by the annotation output or secret-output.
type Output struct {
	Name, Value string
	// Found is false if the object does not have the value.
	Found bool
	// Unknown: the object was not read, or is about to be created again.
	Unknown bool
	// Secret: the value must not be shown.
	Secret bool
}

// outputsOf returns the outputs of the desired objects that the owner owns.
func outputsOf(ctx context.Context, in plan.Input) (outputs []Output) {
	for _, d := range in.Desired {
		if len(d.Policies.Outputs) == 0 {
			continue
		}
		live := in.Live[d.Key]
		values := observe.OutputsOf(live.Status)
		for _, declared := range d.Policies.Outputs {
			value, evaluated := values[declared.Expression]
			output := Output{Name: declared.Name, Secret: declared.Secret || value.OfSecret || value.OfManifest && confidential.Is(ctx)}
			if live.Existence != plan.Present || in.Owner.Owns(live.Ownership) {
				output.Value, output.Found, output.Unknown = value.Value, value.Found, live.Existence != plan.Present || !evaluated
			}
			outputs = append(outputs, output)
		}
	}
	return outputs
}
