// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package changes calls a function for every change of the objects of a kind: for
// telling another system about them, without writing a controller.
package changes
