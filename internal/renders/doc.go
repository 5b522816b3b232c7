// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package renders holds the values that the operator and its generators pass to each other in the context of a
// rendering, and that no generator of a user needs: the target cluster, the origins of objects, the progress, the
// use of random values, and the time. It also has the functions that ask a generator for its digest, source, defaults
// and shared types.
package renders
