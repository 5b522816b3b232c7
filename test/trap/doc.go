// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package trap shows that what is tested reaches out for nothing: no environment
// variable, no host name, no connection, no program in PATH and no file beside those
// that it was given.
package trap
