// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli has the commands of corbel that look at components in a cluster and steer them. They follow
// kubectl: flags, names of kinds, output formats and exit codes. Data goes to the standard output, progress and
// warnings to the standard error.
package cli
