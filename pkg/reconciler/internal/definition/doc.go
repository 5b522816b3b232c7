// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package definition judges the change of a CustomResourceDefinition: whether objects that are stored are lost or
// refused by it, or clients that use the type stop working. It compares the live definition with the
// desired one, and knows neither a cluster nor the objects of the type.
//
// A change that makes more objects valid is harmless: an optional field, a version, a value of an
// enum, a wider bound. Every change of a schema that is not known to be harmless is breaking.
package definition
