// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import "errors"

// ErrClosed is returned for targets that are asked for after Close.
var ErrClosed = errors.New("the pool of clients is closed")

// ErrBusy means: not now. The target is being probed for the first time, or as
// many use it as may. The waiter is woken when it is worth to come again.
var ErrBusy = errors.New("the target cluster is in use by others; it is this component's turn soon")

// ErrLocal means that a kubeconfig leads to the local cluster, where identities are
// impersonated: the operator's owner decides by that what a component may do.
var ErrLocal = errors.New("the kubeconfig leads to the cluster that the component lives in; remove it, and impersonate a user or service account if the component must have an identity of its own")

// ErrPerhapsLocal means that a kubeconfig may lead to the local cluster, and does not
// allow to find out.
var ErrPerhapsLocal = errors.New("the kubeconfig may lead to the cluster that the component lives in: it has the same server or certificate authority; grant its user the right to get the namespace kube-system, whose uid tells clusters apart")

// UnreachableError means that the target did not answer. It is being probed; the
// waiter is woken when it answers.
type UnreachableError struct {
	// Err is what the last probe came to.
	Err error
}

// Error says that the target cannot be reached.
func (e *UnreachableError) Error() string {
	return "the target cluster cannot be reached: " + e.Err.Error()
}

// Unwrap returns what the last probe came to.
func (e *UnreachableError) Unwrap() error { return e.Err }
