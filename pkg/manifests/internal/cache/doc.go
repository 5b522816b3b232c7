// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache holds values that are expensive to make, by a digest of what they are
// made of, and drops those that were not used for the longest time.
package cache
