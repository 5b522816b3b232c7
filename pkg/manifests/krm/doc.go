// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package krm runs KRM functions: programs that read a ResourceList from their standard input and
// write one to their standard output, following the KRM functions specification. A function can
// make the objects of a component (NewGenerator), or change the objects of another generator
// (NewTransformer).
//
// # Input of a function
//
// The ResourceList is YAML. Its items are the objects to change, none for a generator. Its
// functionConfig is, unless Function.Config is set,
//
//	apiVersion: corbel.run/v1alpha1
//	kind: Parameters
//	metadata: {name: NAME, namespace: NAMESPACE}   # of the deployment
//	spec: PARAMETERS                               # generators only
//
// The environment of the process is empty.
//
// # Output of a function
//
// The items are the objects from then on. Results are messages: those with the severity error
// (which results without a severity have, too) fail the rendering although the exit code may be 0,
// all other results go to Function.Observe. A function that ends with another exit code fails, too.
//
// # Limits
//
// A function is ended, with all processes that it started, when its time has passed or it writes
// too much. It is not a sandbox: the process runs as the user of the operator and can read what the
// operator can read, the token of its service account included. Run functions that come with the
// operator's image, never functions that a component names.
package krm
