// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package audit checks what an operator did against the audit log of the API server.
//
// Check replays the log of a test: what every component had recorded, and what
// every object looked like, at each moment. On the way it checks each write of the
// operator against the invariants of docs/contributing/invariants.md that a log can show:
//
//	S1   an object is in the record on the server before it is written
//	S2   nothing that belongs to another owner is changed or deleted
//	S3   every deletion demands a uid
//	S4   an object is dropped from the record only if it is gone or not ours any more
//	S12  the finalizer is there before the record, and goes after everything else
//	S18  requests for dependents are sent as the user that they should
//	S25  a component that says that it is ready names a revision that was ready
//
// What an operator keeps for itself is no dependent, because it has neither the label nor the
// annotation of one: the Secrets of large inventories, and the one of a component's revisions with
// random values and with the manifests of its history, and those with answers to requests for previews. They are the operator's to write.
// A write of the Secret of outputs demands a version. No other Secret of its name is written.
//
// The environment of the test needs the options AuditLog and AuditBodies.
package audit
