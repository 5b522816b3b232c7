// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package references finds the references in the spec of a component, and loads the
// ConfigMaps and Secrets that they name.
//
// A [Finder] walks through a spec by reflection. [Load] reads each object once, with the identity
// of the operator and past all caches, and hands its content to the references. An absent object is
// reported as an [Absence]: a component waits for the objects of its references that do not exist,
// and a request that fails is an error.
//
// The types of references belong to pkg/component. A [Source] describes a value of such a type.
package references
