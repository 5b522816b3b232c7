// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads kubeconfigs from sources that the operator does not trust.
//
// The loader of client-go does everything that such a file asks for: it runs programs, opens files
// and connects to proxies. Here a kubeconfig is data. It is decoded strictly into the type of
// client-go; each field of a cluster or user is on a list of allowed fields, or the whole is
// refused; the result holds an address and credentials and nothing else. The package opens neither
// files nor connections.
//
// Entries that the current context does not use are validated with the same rules: a change of one
// word would use them.
package kubeconfig
