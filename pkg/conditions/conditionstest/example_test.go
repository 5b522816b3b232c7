// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditionstest_test

import (
	"fmt"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/test/widget"
)

func Example() {
	w := &widget.Widget{}
	fmt.Println(conditionstest.Errors(w))

	conditions.MarkTrue(w, "Ready", "Ready", "all is well")
	fmt.Println(conditionstest.Errors(w))
	// Output:
	// [Ready is missing]
	// []
}
