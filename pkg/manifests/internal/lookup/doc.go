// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package lookup is the template function lookup: it reads objects of the target
// cluster, with the identity that the dependent objects are written with.
package lookup
