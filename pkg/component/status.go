// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import "github.com/corbel-run/corbel/api/v1alpha1"

// Status is the part of a component's status that belongs to Corbel. Embed it
// inline into the status of your own type.
//
// The custom resource definition must have the status subresource, and should default
// status.observedGeneration to -1, because tools mistake an empty status for a good one. The
// documentation of v1alpha1.ComponentStatus has the markers for both, and columns for kubectl.
type Status = v1alpha1.ComponentStatus
