// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package subject is what the processes that are measured have in common. Each
// reads orders as lines of JSON from its standard input and answers each with one
// on its standard output: what it did, and what that took in requests, processor
// time and memory. It ends with its input. So the numbers of a subject hold nothing
// of the harness, and a restart of an operator is one.
package subject
