// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy converts what users say about a dependent object to rules that
// cannot be wrong.
//
// Rules come from three places: annotations on the object itself, the component,
// and the options of the reconciler, in this order of precedence. Defaults unites
// the latter two into one Set; Parse merges the annotations of an object into it.
// Both report all mistakes at once, and both either return a Set in which every
// field is valid or an error. Nothing else builds a Set, so nothing that decides
// by one has to ask again.
//
// What can only be checked with the object's type or its neighbours in view, such
// as a reference to another object, is checked where these are known.
package policy
