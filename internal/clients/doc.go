// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients makes and keeps the targets that components are deployed to.
//
// A target costs connections and remembers the types of its server, so there is
// one for each identity and not one for each component: the operator's own in
// the local cluster, and one for each user that components let it impersonate.
package clients
