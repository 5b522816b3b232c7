// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

// AnnotationReconcileRequestedAt asks for a reconcile: each new value is one request. It is the
// annotation that the command flux sets, and other tools after it. A component takes it like the
// annotation reconcile-at; of two the later time counts.
//
// On: the component, or another object of a controller that uses summarize.RecordReconcileReq
// Format: text, by convention the current time in the form of RFC 3339; a component records at most 128 bytes of it
// Default: none
// Example: reconcile.fluxcd.io/requestedAt: "2026-05-04T10:22:31Z"
// Also: the annotation reconcile-at
const AnnotationReconcileRequestedAt = "reconcile.fluxcd.io/requestedAt"
