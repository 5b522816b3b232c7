// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/lifecycle"
)

// contain calls f and makes a *lifecycle.PanicError of a panic. The call has a goroutine
// of its own, because runtime.Goexit would end the worker of the controller for good.
func contain(f func() (ReconcileResult, error)) (out ReconcileResult, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if value := recover(); value != nil || !returned {
				out, err = ReconcileResult{}, &lifecycle.PanicError{Value: value, Stack: debug.Stack(), Goexit: value == nil}
			}
		}()
		out, err = f()
		returned = true
	}()
	<-done
	return out, err
}

// contained makes a panic of the function mean that a change counts: it is called where
// a panic would end the process.
func contained(changed func(oldObj, newObj client.Object) bool) func(oldObj, newObj client.Object) bool {
	return func(oldObj, newObj client.Object) (counts bool) {
		defer func() {
			if value := recover(); value != nil {
				logf.Log.WithName("changes").Error(&lifecycle.PanicError{Value: value}, "option Changed", "stack", string(debug.Stack()))
				counts = true
			}
		}()
		return changed(oldObj, newObj)
	}
}
