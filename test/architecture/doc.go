// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package architecture checks that the repository is laid out as ARCHITECTURE.md
// describes. Its tests read the sources of the repository and fail, with a
// sentence that says what to do, when
//
//   - an import points up, or sideways along an edge that is not listed;
//   - a package that decides (closed) or holds data imports more than its
//     allow-list, or reads the clock;
//   - a heavy library is imported outside the one package that needs it;
//   - a package has no comment that describes it, or a public one no Example that runs;
//   - a source lacks its license header, or a text names a path of one machine or
//     unfinished work;
//   - the public packages have more exported names, methods or fields than face.go allows;
//   - tests reconcile objects and do not check the resulting conditions;
//   - the documents name a package or a file that does not exist;
//   - a workflow uses an action by a tag, or by another commit than a second one does, or its jobs can write by default.
//
// The rules are tables: rooms.go says which packages exist and on which floor,
// external.go what they may import from elsewhere. A new package starts with a
// line in rooms.go. The checks themselves are functions from a Tree to
// violations and are tested with small trees that break one rule each.
package architecture
