// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics declares all metrics and registers them with the registry of
// controller-runtime. The metrics server of the manager publishes them.
//
// A label never holds the name or the namespace of an object, so that the number
// of series does not depend on how many components there are: values that could be
// anything are folded into "Other". cmd/corbel/hack/reference writes a page about them.
package metrics
