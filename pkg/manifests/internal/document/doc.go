// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads a stream of YAML or JSON documents into plain values:
// maps with string keys, lists, strings, int64, float64, booleans and nil.
//
// It reads what kubectl and the API server's clients read, with the same
// result, and refuses what they let pass silently: keys that are set twice,
// keys that become the same only as strings, values that JSON cannot hold, and numbers
// that would become others.
// Every mistake comes with its line, counted in the stream and not in the
// document. Nesting is limited, and so is what aliases expand to, in values and in bytes.
package document
