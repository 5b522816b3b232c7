// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package shops runs the operator of the example on a control plane, for tests of what looks at its components, and
// creates Shops.
package shops
