// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package files picks and reads the files of a generator. It reads nothing but regular files of the
// given file system, in a fixed order and up to a limit, because the file system may hold files of
// other users.
package files
