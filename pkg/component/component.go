// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/types"
)

// Component is a custom resource that stands for a set of dependent objects. It
// is implemented by the pointer to an operator's own API type.
//
// A component, or its spec, may implement any of the ...Configuration interfaces
// of this package to tune how it is reconciled.
type Component interface {
	client.Object
	// GetSpec returns the spec, usually as a pointer into the component. The
	// generator gets it as its parameters.
	GetSpec() types.Unstructurable
	// GetStatus returns the part of the status that belongs to Corbel, as a
	// pointer into the component. It must not be nil.
	GetStatus() *Status
}

// State is the summary of a component's condition in one word.
type State = v1alpha1.State

// The states of a component; see package v1alpha1 for what they mean.
const (
	StateReady           = v1alpha1.StateReady
	StatePending         = v1alpha1.StatePending
	StateProcessing      = v1alpha1.StateProcessing
	StateDeletionPending = v1alpha1.StateDeletionPending
	StateDeleting        = v1alpha1.StateDeleting
	StateError           = v1alpha1.StateError
)
