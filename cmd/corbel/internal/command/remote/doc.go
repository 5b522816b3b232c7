// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package remote fetches packed Helm charts from registries and web servers, as Helm does: with the
// credentials of helm registry login and docker login, and, where no version is named, the newest one that is
// no pre-release. [Repositories] fetches the sub-charts that a chart names.
//
// Only the command imports it, so that no operator links a client of registries.
package remote
