// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package trap shows that the tested code uses no environment variable, no host name, no
// connection, no program in PATH and no file but those that it was given.
package trap
