// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package gzipped compresses content that is kept, in Secrets and in memory. The state of a compressor takes a megabyte, so it is
// used again.
package gzipped
