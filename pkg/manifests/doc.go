// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifests makes the dependent objects of a component. A Generator renders parameters,
// usually the spec of the component, to objects. This package holds the interface, the plainest
// generators, and the pieces that generators are put together from:
//
//   - FromFS serves plain YAML and JSON files,
//   - GeneratorFunc makes a Go function a generator, and FromApplyConfigurations
//     lets it return apply configurations,
//   - Join puts the objects of several generators together,
//   - Transform changes the parameters before, or the objects after,
//   - Isolated lets a generator render in a process of its own.
//
// Generators for templates, charts, kustomizations and KRM functions are packages
// of their own below this one, and so are ready-made transformers (transform).
//
// A generator must return the same objects for the same input: every difference between two calls
// counts as a change and is sent to the cluster. It must not change its parameters. The returned
// objects belong to the caller.
//
// The client of the target cluster and the facts about the component come through the context, see
// FromContext.
//
// Callers should use the function Generate, not the method: it converts each mistake of a
// generator, panics and nil objects included, into an error.
package manifests
