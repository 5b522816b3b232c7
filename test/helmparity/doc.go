// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package helmparity renders charts with pkg/manifests/helm and with the code of
// helm template, and compares the objects one by one, in order, with the values that
// clients get: for several versions of Kubernetes, for installations and upgrades, and
// with each values file that a chart ships. It is a module of its own, because Helm's
// commands depend on much that nothing else needs.
package helmparity
