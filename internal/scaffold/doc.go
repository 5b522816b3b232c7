// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes the project of an operator: from a Helm chart, a kustomization, a folder of
// manifests, or for a generator in Go.
//
// [Read] reads the source, [New] turns it and the options into a [Project], which is a set of files in
// memory, and [Project.Write] writes them. A folder is written as a whole, or not at all: the files
// are made complete beside it, by the commands that need them (go mod tidy, controller-gen, the
// golden files of the tests), and moved to its place at the end.
//
// [Project.Update] does the same for a folder that exists: a file that the author has not changed is
// replaced, and one that was changed on both sides is merged; what cannot be merged is marked as
// git does.
//
// The package values learns the types of a chart's values, and the package rules the rights that the
// operator needs.
package scaffold
