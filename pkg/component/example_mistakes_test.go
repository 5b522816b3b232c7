// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
)

// Mistakes in the wiring are errors of the setup, all at once.
func ExampleReconciler_SetupWithManager() {
	reconciler := component.NewReconciler[*Greeting]("greeting.example.com", nil, component.ReconcilerOptions{Finalizer: new("orphan")})
	fmt.Println(reconciler.SetupWithManager(nil))

	// Output:
	// set up reconciler greeting.example.com: option Finalizer "orphan": belongs to the API server
	// resource generator: the generator is nil
	// the manager is nil
}

// The state comes with the reason and the message of condition Ready.
func ExampleStatus_GetState() {
	var greeting Greeting
	greeting.Status.State = v1alpha1.StateReady

	state, reason, message := greeting.Status.GetState()
	fmt.Printf("%s %q %q %v\n", state, reason, message, greeting.Status.IsReady())

	// Output:
	// Ready "" "" true
}
