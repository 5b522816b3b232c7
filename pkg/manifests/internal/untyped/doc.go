// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package untyped turns the objects of generators, which may be of any Go type,
// into the maps that transformers and functions work with.
package untyped
