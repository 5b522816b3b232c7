// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak keeps many components busy for minutes, with edits, drift and deletions.
// A proxy between the operators and the API server loses, delays, cuts off, refuses and
// repeats requests and breaks watches; operators, etcd and the API server are killed and
// stopped; labels and annotations are removed, and namespaces are deleted. Then everything comes
// to rest, and all objects of the cluster are checked: nothing lost, nothing of others
// touched, nothing left over, nothing grown, nothing sent at rest.
package soak
