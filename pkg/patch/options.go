// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import "sigs.k8s.io/controller-runtime/pkg/client"

// HelperOption configures a Helper.
type HelperOption func(*Helper)

// WithReader sets the reader for the look at the server after a conflict. It
// should not be a cache, which may be as old as the object. Default is the client.
func WithReader(reader client.Reader) HelperOption {
	return func(h *Helper) { h.reader = reader }
}

// WithFieldOwner sets the name under which the server records our writes.
func WithFieldOwner(owner string) HelperOption {
	return func(h *Helper) { h.owner = owner }
}

// WithoutSpec limits the Helper to metadata and status: changes of anything else
// stay in memory.
func WithoutSpec() HelperOption {
	return func(h *Helper) { h.withoutSpec = true }
}

// HelperOptions are the resolved options of one Patch.
type HelperOptions struct {
	// OwnedConditions are the types of conditions that nobody else writes.
	OwnedConditions []string
	// IncludeStatusObservedGeneration makes Patch set status.observedGeneration.
	IncludeStatusObservedGeneration bool
}

// Option configures one Patch.
type Option interface {
	// ApplyToHelper applies the option.
	ApplyToHelper(options *HelperOptions)
}

// WithOwnedConditions names the types of conditions that nobody else writes.
// After a conflict our side is right about them, and others' changes of all other
// conditions are kept. Without this option all of status is taken to be ours alone.
type WithOwnedConditions struct {
	// Conditions are the types.
	Conditions []string
}

// ApplyToHelper implements Option.
func (o WithOwnedConditions) ApplyToHelper(options *HelperOptions) {
	options.OwnedConditions = append(options.OwnedConditions, o.Conditions...)
}

// WithStatusObservedGeneration sets status.observedGeneration to the generation
// of the object, if its type has the field.
type WithStatusObservedGeneration struct{}

// ApplyToHelper implements Option.
func (WithStatusObservedGeneration) ApplyToHelper(options *HelperOptions) {
	options.IncludeStatusObservedGeneration = true
}
