// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package record keeps the inventories of components: a [Keeper] opens and removes them, and a [Record] is one in a reconcile. Package
// internal/inventory stores them.
package record
