// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package shared decides about the types that all components of a reconciler share: the
// CustomResourceDefinitions in the folders crds of its chart.
//
// Such a definition belongs to the reconciler and to no component. A label shows that, and an
// annotation has the version and content that it was made of. [Decide] compares that with the
// generator of the running process. Of two versions the higher one stays, so that two versions of
// an operator do not write one definition alternately.
package shared
