// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package shared decides what is written of the types that all components of a reconciler share: the
// CustomResourceDefinitions in the folders crds of its chart.
//
// Such a definition belongs to the reconciler and to no component. A label says so, and an annotation says of which version
// and content it was made. [Decide] compares that with what the generator of the running process has. Of two
// versions the higher one stays, so that two versions of an operator do not write one definition alternately.
package shared
