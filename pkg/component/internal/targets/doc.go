// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package targets connects components to the clusters that their dependents are in.
//
// [Targets] has one engine for each cluster and user. The package also keeps two facts about the
// local cluster, in which components are: its uid, by [ClusterUID], and the key of all digests, by
// [DigestKey]. Functions about a target.Access complete and name the user that is impersonated, and
// explain why the server refuses it.
package targets
