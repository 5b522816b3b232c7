// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package difference compares objects: [Between] compares two renderings of the same objects, and
// hides the values, because they may be secret; [Fields] compares two states of one object, with
// the values, but without values of Secrets.
package difference
