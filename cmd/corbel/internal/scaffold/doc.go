// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes the project of an operator: from a Helm chart, a kustomization, a folder of
// manifests, or for a generator in Go.
//
// [Create] makes a project in a folder beside its place, completes it by the commands that it needs (go
// mod tidy, controller-gen), and moves it to its place at the end: all of it, or nothing.
//
// [Update] does the same for a project that exists. A file that the author has not changed is
// replaced, and one that was changed on both sides is merged; what cannot be merged is marked as
// git does.
//
// The package values learns the types of a chart's values, and internal/rbacrules the rights that the
// operator needs.
package scaffold
