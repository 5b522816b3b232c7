// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package lookup is the template function lookup: it reads objects of the target
// cluster, as the user that writes the dependent objects.
package lookup
