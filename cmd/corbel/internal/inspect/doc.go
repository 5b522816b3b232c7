// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspect reads components of any operator that is built with Corbel, and their dependents. It needs
// neither the operator nor its types: what it knows is in the status of the component, in the Secrets of its
// inventory and in the labels and annotations of the dependents.
//
// It only reads. Values of Secrets do not leave it.
package inspect
