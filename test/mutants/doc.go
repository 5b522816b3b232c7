// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants breaks the safety rules of the engine, one at a time, and reports
// which of these changes the tests without a control plane do not notice.
//
// A mutant is a row of a table: a text in a file, the text that replaces it, and the
// packages with the tests that notice. It is applied with an overlay of the go command, so
// that no file changes. `make mutants` runs the program; a test of this package
// checks that each row still fits the code.
package main
