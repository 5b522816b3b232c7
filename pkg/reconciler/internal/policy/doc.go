// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy converts the policies of a dependent object to rules that cannot be wrong.
//
// Rules come from three places: annotations on the object itself, the component, and the options of
// the reconciler, in this order of precedence. Defaults unites the latter two into one Set; Parse
// merges the annotations of an object into it. Both report all mistakes at once, and both either
// return a Set in which every field is valid or an error. Nothing else builds a Set, so the users
// of a Set need no checks of their own.
//
// Rules that can only be checked together with the object's type or its neighbours, such as a
// reference to another object, are checked where these are known.
package policy
