// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire puts functions into the way of a client's requests, and keeps what is sent.
package wire
