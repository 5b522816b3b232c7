// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifeststest tests generators of this module and of the authors of operators. A Case
// holds the arguments of a generator; its methods are checks:
//
//   - Golden compares the rendered objects with a file,
//   - Deterministic renders often, also at the same time, and wants the same bytes,
//   - Valid asks an API server whether it would accept the objects,
//   - EqualsHelmTemplate compares with the output of helm template.
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
