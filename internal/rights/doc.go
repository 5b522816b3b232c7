// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rights reads from the answers 403 of a server which rights a user lacks, and writes
// these rights as rules to paste.
package rights
