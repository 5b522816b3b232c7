// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"reflect"
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
	ordered   []*unstructured.Unstructured
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
	for _, kind := range []schema.GroupKind{{Kind: "ConfigMap"}, {Group: "apps", Kind: "Deployment"}, {Group: "networking.k8s.io", Kind: "Ingress"}} {
		if _, err := w.client.RESTMapper().RESTMapping(kind); err != nil { // learned before it counts
			return err
		}
	}
	return nil
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
		w.objects, w.ordered = objects, labelled(copies(objects))
		return each(objects, func(object *unstructured.Unstructured) error { return w.client.Create(ctx, object) })
	}
	var changed []*unstructured.Unstructured
	for i, live := range w.objects {
		if reflect.DeepEqual(w.ordered[i], objects[i]) {
			continue
		}
		for key, value := range objects[i].Object {
			if key != "metadata" {
				live.Object[key] = value
			}
		}
		live.SetLabels(objects[i].GetLabels())
		live.SetResourceVersion("") // controllers write it, too
		changed = append(changed, live)
	}
	w.ordered = copies(objects)
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

func copies(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		all = append(all, object.DeepCopy())
	}
	return all
}

// labelled gives objects a label and an annotation as long as those of an operator.
func labelled(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, object := range objects {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["limit.corbel.run/owner-id"] = strings.Repeat("x", 32)
		object.SetLabels(labels)
		object.SetAnnotations(map[string]string{"limit.corbel.run/owner": strings.Repeat("x", 100)})
	}
	return objects
}
