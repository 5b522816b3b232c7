// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance holds stories of components that run against any cluster, and write a report: make conformance
// runs them against the cluster of a kubeconfig. Without a kubeconfig they run on a control plane of test/env.
//
// A run works in namespaces of its own, with a type of its own, and removes all that it has created: also after a
// failure, and after Ctrl-C.
package conformance
