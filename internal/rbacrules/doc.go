// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbacrules finds out which kinds of objects a chart can render, in every branch of its templates, and
// which rights an operator needs for them.
//
// [ScanChart] reads the parse trees of the templates, and renders nothing: of an if and its else, both
// count. A kind that is computed in a way that cannot be read is reported, and not guessed.
package rbacrules
