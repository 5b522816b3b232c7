// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

// AnnotationReconcileRequestedAt asks for a reconcile with each new value, as the command flux does. Of this
// annotation and reconcile-at the later time counts.
//
// On: the component, or another object of a controller that uses summarize.RecordReconcileReq
// Format: text, by convention the current time in the form of RFC 3339; a component records at most 128 bytes of
// it
// Default: none
// Example: reconcile.fluxcd.io/requestedAt: "2026-05-04T10:22:31Z"
const AnnotationReconcileRequestedAt = "reconcile.fluxcd.io/requestedAt"
