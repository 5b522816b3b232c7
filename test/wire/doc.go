// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire intercepts the requests of a client, records what is sent, and injects faults.
package wire
