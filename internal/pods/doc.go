// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package pods finds out from pods why a workload is not ready. The condition Ready of a
// component and the command corbel why use the same words, because both are from here.
package pods
