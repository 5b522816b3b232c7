// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak keeps many components busy for minutes, with edits, drift, deletions
// and an outage of the API server, and then judges whether the operator is still as it
// should be: everything there, nothing grown, nothing sent at rest.
package soak
