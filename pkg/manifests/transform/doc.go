// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package transform holds transformers for manifests.Transform.
//
// They change the parameters before a generator gets them:
//
//   - JSONPatch with JSON patch operations,
//   - CEL with an expression,
//   - gotemplate.NewParameters, in its own package, with a template,
//
// or the objects that it gives:
//
//   - Patches with the patches and images of a kustomization,
//   - Labels and Annotations,
//   - Substitute with values for ${NAME},
//   - CEL with an expression,
//   - krm.NewTransformer, in its own package, with a program.
//
// Patches work as in kustomize, but do not need the library. Three things differ: an image's name
// is no regular expression, new entries of merged lists stand last and not first, and no patch can
// change the type of an object, its name or its namespace, whatever its options. The transformers
// return objects as maps (unstructured.Unstructured), whatever type the generator gave.
//
// The input of users, patches and expressions, is limited in size and in cost. No object becomes
// larger than 3 MiB, the limit of the API server, and all together grow by at most 256 MiB.
// Mistakes in it are found when the transformer is made.
package transform
