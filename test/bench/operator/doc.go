// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package operator is an operator made with Corbel that can be measured: a manager
// with one component reconciler and its defaults, as a user would set it up.
package operator
