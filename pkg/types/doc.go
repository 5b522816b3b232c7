// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package types holds the small interfaces and errors that generators, hooks and reconcilers share:
// parameters that become a map (Unstructurable), errors that ask for a retry after a delay
// (RetriableError), errors of panics (PanicError), whether an answer proves that an object is gone
// (IsGone), and how to bring additional types into a client (SchemeBuilder). It also has fields that
// the specs of most workloads have: ImageSpec, PodProperties and ContainerProperties.
package types
