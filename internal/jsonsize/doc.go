// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsonsize measures values by the bytes that they have as JSON, without
// encoding them. A value that shares its parts is small in memory and large once it
// is encoded or copied; this package counts each part as often as it occurs.
package jsonsize
