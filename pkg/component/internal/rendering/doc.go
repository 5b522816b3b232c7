// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rendering renders the dependent objects of a component.
//
// A [Renderer] calls the generator with a copy of the component, and applies the patches of
// the component. A generator should render the same from the same input. For those that do
// not, [Last] decides whether a change is applied: a change that nothing explains is applied
// seldom. What may explain a change are the component and the objects that the generator has
// read; the clients that it gets note them.
//
// Where a generator reports that it used random values, the fields that come from them are
// found by rendering more than once. They keep their values as long as the revision lasts, and
// all renderings of a revision take the same time for the current one.
package rendering
