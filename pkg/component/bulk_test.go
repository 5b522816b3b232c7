// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
)

func TestAFleetIsNotListedWhileFewOfItAreHandled(t *testing.T) {
	const fleet, bulkLife = 100, 3 * time.Second // what was listed is too old then
	widgets, waiting := make([]client.Object, fleet), map[client.ObjectKey]bool{}
	for i := range widgets {
		widgets[i] = &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("w", i)}}
		waiting[client.ObjectKeyFromObject(widgets[i])] = true
	}
	lists, now, broken := 0, time.Unix(1000, 0), false
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(widgets...).Build()
	counting := interceptor.NewClient(server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if lists++; broken && lists%2 == 0 {
				return errors.New("the second page does not fit the type")
			}
			err := c.List(ctx, list, options...)
			if broken {
				list.SetContinue("second")
			}
			return err
		},
	})
	kind := widget.GroupVersion.WithKind("Widget")
	read := component.NewBulkRead[*widget.Widget](counting, kind, func() map[client.ObjectKey]bool { return maps.Clone(waiting) }, func() time.Time { return now })
	next := 0
	want := func(known bool, requests int) {
		t.Helper()
		key := client.ObjectKeyFromObject(widgets[next])
		next++
		delete(waiting, key)
		if found := read(t.Context(), key); found != known || lists != requests {
			t.Errorf("%s is known: %t, after %d lists; want %t and %d", key.Name, found, lists, known, requests)
		}
	}
	miss := func(n, requests int) {
		t.Helper()
		for range n {
			late := client.ObjectKey{Namespace: "default", Name: fmt.Sprint("late", len(waiting), next, requests, n)} // is in no list
			waiting[late] = true
			if read(t.Context(), late) || lists != requests {
				t.Errorf("one that was created after the list is known, after %d lists, want %d", lists, requests)
			}
		}
	}
	for range 20 {
		want(true, 1)
	}
	miss(20, 1)             // of all others, that list may still be of use
	now = now.Add(bulkLife) // as many were used as were missed
	want(true, 2)
	miss(2, 2)
	now = now.Add(bulkLife) // more were missed
	want(false, 2)
	now = now.Add(bulkLife)
	want(true, 3)
	miss(2, 3)
	now = now.Add(bulkLife) // for the second time
	want(false, 3)
	now = now.Add(bulkLife)
	want(false, 3)
	now = now.Add(bulkLife)
	want(true, 4)
	want(true, 4)
	miss(2, 4)
	now = now.Add(bulkLife)
	want(true, 5)
	miss(2, 5)
	now = now.Add(bulkLife) // for the first time again
	want(false, 5)
	now = now.Add(bulkLife)
	want(true, 6)

	broken = true
	now = now.Add(bulkLife)
	want(true, 8)
	miss(2, 8)
	for range 2 {
		now = now.Add(bulkLife)
		want(false, 8)
	}
	now = now.Add(time.Minute)
	want(true, 10)
}
