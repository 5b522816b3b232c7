// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads a stream of YAML or JSON documents into plain values:
// maps with string keys, lists, strings, int64, float64, booleans and nil. Decode makes objects of them.
//
// The YAML library parses the text to nodes, which know their lines; this package gives the nodes
// the values that kubectl and the API server's clients give them, which speak YAML 1.1. It refuses
// mistakes that they accept silently: keys that are set twice, keys that become the same only as
// strings, values that JSON cannot hold, and numbers that would change. The first mistake of each
// document is reported, with its line, counted in the stream and not in the document. Nesting is
// limited, and so is the expansion of aliases, in values and in bytes.
package document
