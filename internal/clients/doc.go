// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients keeps one target for each identity, so that the connections
// and what is known about the types of a cluster are shared by all components
// that use the same identity.
package clients
