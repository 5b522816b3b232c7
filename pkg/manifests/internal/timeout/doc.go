// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package timeout runs renderings that cannot be stopped from outside, and gives up
// waiting for them in time.
package timeout
