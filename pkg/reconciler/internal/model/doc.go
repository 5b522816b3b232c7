// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package model checks the planner against every small history there is.
//
// A State is a cluster in memory, strict like an API server, with components and the leaders that
// reconcile them. A leader goes through the same loop as the engine (read the component, look,
// plan, record, write, fold), and each of its requests is a Move of its own. Between any two of
// them it may crash or lose its lease, and other clients may create, change, steal, hold and delete
// objects. A leader may know objects from a watch, which may be late, and assumes that objects that
// were never recorded as written do not exist. Explore visits every State that can be reached by a
// bounded number of such disturbances, and checks the invariants (docs/contributing/invariants.md)
// in each.
//
// The cluster keeps a truth that the planner does not see: the owner of each object, whatever its
// label and annotation are, and the manifest that it was made of. The checks look only at that, and
// share no decision with the planner.
//
// The planner does not read outputs, so no State has them. The comparison with a real cluster checks them.
package model
