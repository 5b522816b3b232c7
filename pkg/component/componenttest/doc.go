// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package componenttest lets authors of operators test them against an API server: the life of a
// component from its creation to its deletion, also if the operator crashes or the server fails. An
// [Operator] sets up the operator; its methods are tests:
//
//   - TestLifecycle creates, changes and deletes a component, and expects nothing to be left,
//   - TestCrashes does the same, once per write of the operator, with a crash there,
//   - TestFaults does it with a server that answers part of the requests with errors,
//   - TestUpgrade lets another version of the operator take over,
//   - TestRights expects that the operator is refused nothing with its rules, and that none of them
//     is of no use; it names unused rules.
//
// A typical test of an operator:
//
//	o := componenttest.Operator[*v1.Shop]{Config: config, Scheme: scheme, SetUp: setUp}
//	o.TestCrashes(t, shop, func(s *v1.Shop) { s.Spec.Replicas = 3 }, 10)
//
// The config is the config of an administrator of any cluster that has the CustomResourceDefinition
// of the component: envtest, kind, or another one for tests. The cluster has to bring the
// dependents to the state Ready; where no controllers run, as with envtest, Deployments and Jobs
// never become ready. No other instance of the operator may reconcile the components.
//
// Every case has a namespace of its own. Cases run one after the other, because they share the
// cluster-scoped objects and objects of other namespaces. Tests of one operator can run in parallel
// only if all dependents are in the namespace of the component, and not with TestRights: its
// operator sees all namespaces.
//
// The end of a case is the right one if
//
//   - there are the same dependents with the same content as without crashes and faults; the
//     values of Secrets, and checksums in annotations, are not compared,
//   - no object was created more often than without them,
//   - the conditions of the component keep the rules of package conditionstest,
//   - after the deletion nothing is left: no dependent, no object that the operator
//     created, and nothing else in the namespace that was not there before.
//
// Dependents in other clusters than the component's are not looked at.
package componenttest
