// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package service is the API that the example operates: a small HTTP service that keeps
// buckets in memory, with a Go client as such services have one. It knows idempotency keys:
// two requests with one key make one bucket. It can be made to fail.
package service
