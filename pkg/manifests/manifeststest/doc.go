// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifeststest tests generators, those of this module and those that the
// authors of operators write. A Case says what a generator is called with; its
// methods are checks:
//
//   - Golden compares what is rendered with a file,
//   - Deterministic renders often, also at the same time, and wants the same bytes,
//   - Valid asks an API server whether it would accept the objects,
//   - EqualsHelmTemplate compares with what helm template prints.
//
// A typical test of a generator:
//
//	c := manifeststest.Case{Generator: g, Namespace: "prod", Name: "app", Parameters: spec}
//	c.Golden(t, "testdata/app.golden")
//	c.Deterministic(t)
//
// The package registers the flag -update of go test, with which Golden writes the
// files: go test ./pkg/shop -update. A test package must not register a flag of
// this name itself, but can read it with Update.
package manifeststest
