// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package slice chooses the cases that a long enumeration runs: every one, or one
// in N of them. CORBEL_SLICE=1/N says how many, 1/32 unless it is set, and
// CORBEL_SLICE_OFFSET which; the Makefile derives the offset from the commit, so that a few
// commits see all cases.
package slice
