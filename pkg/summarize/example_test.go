// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/test/widget"
)

func Example() {
	ctx := context.Background()
	server := widget.NewServer(&widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 1}})
	w := &widget.Widget{}
	if err := server.Get(ctx, key, w); err != nil {
		fmt.Println(err)
	}
	patcher, err := patch.NewHelper(w, server)
	if err != nil {
		fmt.Println(err)
	}

	// The work is done here, and this came out:
	workErr := result.NewStalling(errors.New("no such chart"), "ChartNotFound")

	out, err := summarize.NewHelper(nil, patcher).SummarizeAndPatch(ctx, w,
		summarize.WithConditions(summarize.Conditions{Target: "Ready", Owned: []string{"Ready", "Reconciling", "Stalled"}}),
		summarize.WithReconcileError(workErr),
		summarize.WithIgnoreNotFound(),
		summarize.WithResultBuilder(result.AlwaysRequeueResultBuilder{RequeueAfter: 10 * time.Minute}),
	)
	fmt.Println(out.RequeueAfter, err)
	for _, c := range w.Status.Conditions {
		fmt.Println(c.Type, c.Status, c.Reason, c.Message)
	}
	// Output:
	// 10m0s <nil>
	// Ready False ChartNotFound no such chart
	// Stalled True ChartNotFound no such chart
}
