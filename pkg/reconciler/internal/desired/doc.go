// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package desired builds the desired objects from rendered ones.
//
// Build accepts all results of generators, typed or not, single or in lists, and returns the input
// of the planner: each object identified, placed in its namespace, with valid policies, a digest
// and our label and annotation. The rest of the engine relies on that.
//
// It goes through all objects before it gives up: one error lists every mistake, each with the
// object it belongs to. So a user repairs them all at once, and nothing is written as long as there
// is one.
//
//	read      typed objects become JSON-like, lists become their elements
//	identify  type, name and metadata are checked, the server's own fields are removed
//	place     the scope of the type decides about the namespace
//	finish    policies are parsed, digests computed, our label and annotation set
//	relate    duplicates, contradicting orders and references between objects
package desired
