// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package untyped makes maps of the objects that generators return, and finds the images in them. A typed
// object may be of any type of an author, with methods that panic: callers convert objects where the panic
// becomes an error.
package untyped
