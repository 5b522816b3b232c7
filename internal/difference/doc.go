// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package difference says where two renderings of the same objects differ, without
// saying what the values are: they may be secret.
package difference
