// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads kubeconfigs that come from people whom the operator
// does not trust.
//
// An ordinary loader does what such a file asks for: it runs programs, opens
// files and talks to proxies. Here a kubeconfig is data. Every field is on a list
// of what is allowed, or the whole is refused; the result holds an address and
// credentials and nothing else. The package cannot open files or connections.
//
// Entries that the current context does not use are held to the same rules: they
// could be used tomorrow by one word.
package kubeconfig
