// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package execute executes the steps of a plan. It decides how each step is done, and never whether
// it should be done.
//
//   - create demands that the object does not exist.
//   - replace is a PUT of the manifest. For the kinds in carriers, on which
//     such a PUT would be refused or would reset fields of other clients, the object
//     is read first and these fields are copied.
//   - merge and override are server-side applies. If the answer shows that the
//     fields have earlier owners that count as us, these are united with ours and
//     the apply is sent once more; normally it is one request.
//   - delete removes an object, after its guard found that no object of other owners
//     would go with it.
//   - orphan removes our label and our annotation from an object and nothing else.
//
// Every write but a create carries the uid and the resourceVersion that the plan saw, and a create
// demands absence. So a plan that was made from a state that has changed since cannot do harm: the
// server refuses the write, and the error tells the caller to observe the object again (see
// [IsConflict]). Only a deletion or an orphaning is sent again by itself, a few times: it does not
// depend on the content of the object, but on its owner, which is read before each try.
//
// A guard reads, right before the deletion, the objects that would go with a type or a namespace.
// An object that another client creates between that read and the deletion is lost, which a note
// reports.
//
// Steps of one stage run side by side, and the failure of one does not stop the rest; but a later
// stage does not start.
package execute
