// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package record keeps the inventories of components: the durable records of their dependent objects.
//
// A [Keeper] opens an inventory, rebuilds lost parts of it, takes it over from a former operator and removes it. A [Record] is an open
// inventory in one reconcile, which saves it. internal/inventory stores inventories in the status or in Secrets.
package record
