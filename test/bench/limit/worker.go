// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/subject"
)

// workers is how many requests are under way at a time.
const workers = 16

// Worker writes.
type Worker struct {
	client    client.Client
	namespace string
	objects   []*unstructured.Unstructured // as the server answered
}

// Connect makes the client.
func (w *Worker) Connect(_ context.Context, order subject.Order, counter *subject.RequestCounter) error {
	config := order.Cluster.Config()
	config.Wrap(counter.Wrap)
	var err error
	if w.client, err = client.New(config, client.Options{}); err != nil {
		return err
	}
	w.namespace, w.objects = order.Namespace, nil
	_, err = w.client.RESTMapper().RESTMapping(schema.GroupKind{Kind: "ConfigMap"}) // learned before it counts
	return err
}

// Work creates the objects, or updates those that are not as ordered, or deletes them.
func (w *Worker) Work(ctx context.Context, order subject.Order) (time.Time, error) {
	var err error
	switch order.Do {
	case subject.Apply:
		err = w.apply(ctx, labelled(order.Objects.Unstructured(w.namespace)))
	case subject.Delete:
		err = each(w.objects, func(object *unstructured.Unstructured) error {
			uid := object.GetUID()
			return w.client.Delete(ctx, object, client.Preconditions{UID: &uid})
		})
		w.objects = nil
	default:
		err = errors.New("a bare client cannot do that")
	}
	return time.Now(), err
}

func (w *Worker) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	if w.objects == nil {
		w.objects = objects
		return each(objects, func(object *unstructured.Unstructured) error { return w.client.Create(ctx, object) })
	}
	var changed []*unstructured.Unstructured
	for i, live := range w.objects {
		before, _, _ := unstructured.NestedStringMap(live.Object, "data")
		after, _, _ := unstructured.NestedStringMap(objects[i].Object, "data")
		if before["all"] != after["all"] || before["one"] != after["one"] {
			live.Object["data"] = objects[i].Object["data"]
			changed = append(changed, live)
		}
	}
	return each(changed, func(object *unstructured.Unstructured) error { return w.client.Update(ctx, object) })
}

// each does something to all objects, several at a time.
func each(objects []*unstructured.Unstructured, do func(*unstructured.Unstructured) error) error {
	var group errgroup.Group
	group.SetLimit(workers)
	for _, object := range objects {
		group.Go(func() error { return do(object) })
	}
	return group.Wait()
}

// labelled gives objects a label and an annotation as long as those of an operator.
func labelled(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, object := range objects {
		object.SetLabels(map[string]string{"limit.corbel.run/owner-id": strings.Repeat("x", 32)})
		object.SetAnnotations(map[string]string{"limit.corbel.run/owner": strings.Repeat("x", 100)})
	}
	return objects
}
