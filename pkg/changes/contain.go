// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/lifecycle"
)

// contain calls f and makes a *lifecycle.PanicError of a panic.
func contain(f func() (ReconcileResult, error)) (out ReconcileResult, err error) {
	err = guard.Call(func() (err error) {
		out, err = f()
		return err
	})
	if panicked, ok := err.(*guard.PanicError); ok {
		err = &lifecycle.PanicError{Value: panicked.Value, Stack: panicked.Stack, Goexit: panicked.Goexit}
	}
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
