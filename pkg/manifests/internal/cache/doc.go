// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache holds values that are expensive to make, by a digest of their sources, and drops
// the values that were not used for the longest time.
package cache
