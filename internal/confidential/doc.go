// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package confidential keeps the values of Secrets out of conditions, events, errors, spans and the
// log.
//
// It knows no value. It keeps away the texts in which a value may stand:
//
//   - The answer of a server about a Secret is never repeated, whatever the request ([Client], [Answer]).
//   - A reconcile is confidential once it has loaded a Secret, other than a kubeconfig, or its generator has read one
//     ([Start], [Note], [Is]). Then no answer of a server is repeated, and of an error of the generator only its place is
//     reported ([Failure], [At]). The text of the error is in the log.
//   - The log has no body of a request or an answer that may hold a Secret.
//
// [Filter] removes credentials by their form. It stands where texts leave: at the message of a
// verdict, and at the recorder of events.
package confidential
