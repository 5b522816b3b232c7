// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests operators as a whole: a component reconciler in a manager,
// on a real API server, where needed with real controllers and simulated pods.
//
// The tests share one cluster. Each works in a namespace of its own, with a
// component type (Bundle) with dependent objects that the test decides.
package e2e
