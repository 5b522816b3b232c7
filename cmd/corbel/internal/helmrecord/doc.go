// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package helmrecord lists and makes the records that Helm 3 and 4 keep of a release; internal/helmrelease reads them. No
// request here writes.
package helmrecord
