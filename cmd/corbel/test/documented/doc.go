// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package documented uses the APIs that Corbel shares with other projects, under their
// documented names and with their documented signatures, so that a change which breaks
// them does not compile. Its tests compare the uses with the tables of
// docs/contributing/seeds.md, and prove what is in all documents: commands, manifests, messages and
// links, as docs/contributing/documents.md says. They also check the workflows and the issue forms of
// the repository, and the scripts of a release.
package documented
