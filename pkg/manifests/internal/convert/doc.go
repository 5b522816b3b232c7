// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package convert converts the parameters of generators and the objects that they return,
// which may be of any Go type, into the maps that templates, transformers and functions
// work with.
package convert
