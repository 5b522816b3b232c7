// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package helmparity renders charts with pkg/manifests/helm and with the code of
// helm template, and compares the objects one by one, in order. It is a module of
// its own, because Helm's commands depend on much that nobody else needs.
package helmparity
