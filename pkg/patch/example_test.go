// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/test/widget"
)

func Example() {
	ctx := context.Background()
	server := widget.NewServer(stored())
	w := &widget.Widget{}
	if err := server.Get(ctx, key, w); err != nil {
		fmt.Println(err)
	}

	helper, err := patch.NewHelper(w, server)
	if err != nil {
		fmt.Println(err)
	}
	// Before acting: what is about to be made is on record, or nothing is made.
	w.Status.Record = append(w.Status.Record, widget.Item{Name: "pump"})
	if err := helper.Commit(ctx, w); errors.Is(err, patch.ErrConflict) {
		fmt.Println("another client changed the object; reconcile again")
	}
	// After acting.
	w.Status.Phase = "Ready"
	if err := helper.Patch(ctx, w, patch.WithStatusObservedGeneration{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(w.Status.Record, w.Status.Phase, w.Status.ObservedGeneration, helper.Writes())
	// Output: [{pump }] Ready 2 2
}
