// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package owned lists the fields of objects that controllers of Kubernetes and commands of kubectl own by
// design. A manifest does not decide about them: a PUT carries them over, a server-side apply neither sends nor
// takes them, their change is no drift, and they are no difference.
package owned
