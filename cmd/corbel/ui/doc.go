// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ui is the page of the command "corbel ui" and its server: the components of all operators that are built with
// Corbel, and for each its dependents with their readiness, changes by other clients with their author, the cause if it is
// not Ready, plans, events and the history. Changes arrive by themselves.
//
// A [Server] is an [http.Handler]. The command serves it on a loopback address with a token. A program can mount it, too,
// behind a filter that authenticates and authorises requests, such as that of controller-runtime for metrics: then leave
// Address and Token empty, and give it a user of few rights, because each client sees what this user may read.
//
// # How it works
//
//   - handler.go has the routes, the headers of each answer, and errors; access.go decides which requests are answered.
//   - cluster.go is the way to the API server. fleet.go watches the components of all types, once for all pages.
//   - stream.go sends what changed to one page; live.go watches the dependents of the component that it shows.
//   - components.go and tree.go say what is shown of a component and of its dependents, and object.go of one that is open;
//     explain.go, history.go, plan.go and actions.go are the other answers.
//
// What is said about a component is found out by the same packages as for the commands, and in the same words.
//
// # What holds
//
//   - Values of Secrets do not leave the server: they are masked where an object is read.
//   - Without Options.Write nothing is changed, but for the annotation and the Secret by which an operator is asked for a
//     plan or for a difference of revisions. A rollback repeats the name of the component.
//   - Nothing is kept of an object but what the pages show. A page that reads slowly gets the latest state of each
//     thing, not each change. When the last page is closed, all watches end.
package ui
