// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package krm runs KRM functions: programs that read a ResourceList from their
// standard input and write one to their standard output, as the KRM functions
// specification says. A function can make the objects of a component
// (NewGenerator), or change those of another generator (NewTransformer).
//
// # What a function gets
//
// The ResourceList is YAML. Its items are the objects to change, none for a
// generator. Its functionConfig is, unless Function.Config says otherwise,
//
//	apiVersion: corbel.run/v1alpha1
//	kind: Parameters
//	metadata: {name: NAME, namespace: NAMESPACE}   # of the deployment
//	spec: PARAMETERS                               # generators only
//
// The environment of the process is empty.
//
// # What a function gives
//
// The items are the objects from then on. Results are messages: those with the
// severity error (which is also that of results without one) fail the rendering
// although the exit code may be 0, the others go to Function.Observe. A function
// that ends with another exit code fails, too.
//
// # Limits
//
// A function is ended, with all processes that it started, when its time has passed
// or it writes too much. It is not a sandbox: the process runs as the user of the operator and can read what the
// operator can read, the token of its service account included. Run functions
// that come with the operator's image, never such that a component names.
package krm
