// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package difference says where objects differ: [Between] two renderings of the same objects,
// without saying what the values are, because they may be secret, and in which [Fields] two
// states of one object, with the values, but for those of Secrets.
package difference
