// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package documented uses the APIs that Corbel shares with other projects, under their
// documented names and with their documented signatures, so that a change which breaks
// them does not compile. Its tests look for the names in the tables of
// docs/contributing/seeds.md among the uses, and prove manifests, commands and links of all
// documents, as docs/contributing/documents.md says, and the scripts of a release.
package documented
