// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package status reports whether an object does the work that its manifest asks for.
//
// Analyze looks at one object, as the server answered it, and returns Ready, NotReady, Failed or
// ReadinessUnknown, with a short sentence about the reason. It starts from the rules of kstatus,
// which know the built-in workloads and the conventions of conditions and observed generations, and
// is stricter where these rules would let a wave go on too early: a Job is ready when it is
// complete, a CustomResourceDefinition when its names are accepted and it is established, an
// APIService when it is available, a Service of type LoadBalancer when it has an address, a Gateway
// when it is programmed, a Certificate of cert-manager when it is Ready. The whole list is in
// awaited.go.
//
// A caller that knows more about an object than its type tells passes that on: with Hints about the
// future content of the status, or with an expression (see CompileReadyWhen) that replaces the
// rules.
//
// A status of a wrong shape is never an error: the object is not ready, and the sentence names the
// unreadable field.
package status
