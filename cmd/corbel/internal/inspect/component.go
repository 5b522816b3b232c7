// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/component"
)

// Component is a component as it was read.
type Component struct {
	// Object is the whole object.
	Object *unstructured.Unstructured
	// Type is its type.
	Type Type
	// Status is what Corbel wrote of the status. From List and Watch it comes without the items of the inventory.
	Status component.Status
	// Reconciler is the name of the reconciler: the prefix of labels and annotations. It is empty if it could not
	// be found out.
	Reconciler string
	// Mistake says why the status cannot be read; what can be read of it is in Status.
	Mistake error
}

// String names the component: "Shop market/corner".
func (c Component) String() string { return c.Type.Kind + " " + c.Name() }

// Name is the name with the namespace, if there is one.
func (c Component) Name() string {
	return strings.TrimPrefix(c.Object.GetNamespace()+"/"+c.Object.GetName(), "/")
}

// ResourceName is the component as kubectl's -o name prints it: "shop.shop.example.com/corner".
func (c Component) ResourceName() string {
	return strings.ToLower(c.Type.Kind) + "." + c.Type.Group + "/" + c.Object.GetName()
}

// Command is a command of corbel about the component, to paste into a shell.
func (c Component) Command(verb string, flags ...string) string {
	words := append([]string{"corbel", verb, c.ResourceName()}, flags...)
	if namespace := c.Object.GetNamespace(); namespace != "" {
		words = append(words, "-n", namespace)
	}
	return sentence.Command(words...)
}

// Annotation returns an annotation of Corbel by its suffix.
func (c Component) Annotation(suffix string) string {
	return c.Object.GetAnnotations()[c.Reconciler+"/"+suffix]
}

// IsComponent reports whether the status is one that Corbel wrote.
func (c Component) IsComponent() bool {
	return c.Status.Reconciler != "" || c.Status.OwnerID != "" || c.Status.ProcessingDigest != "" || c.Status.State != ""
}

// Ready returns the condition Ready, or an empty one.
func (c Component) Ready() metav1.Condition {
	if ready := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

// Summary returns the state and the message that a list shows: also for a component that is being deleted, that no operator
// has reconciled, or with a change that is not reconciled yet. The state of one that is not reconciled is empty.
func (c Component) Summary() (state, message string) {
	state, message = string(c.Status.State), c.Ready().Message
	switch {
	case c.Object.GetDeletionTimestamp() != nil && state != string(v1alpha1.StateDeletionPending):
		state = string(v1alpha1.StateDeleting)
	case c.Status.State == "":
		state, message = "", "not reconciled yet"
	case c.Status.ObservedGeneration != c.Object.GetGeneration():
		message = fmt.Sprintf("the change to generation %d is not reconciled yet; %s", c.Object.GetGeneration(), message)
	}
	if c.Mistake != nil {
		message = c.Mistake.Error()
	}
	return state, message
}

// componentOf reads the status of an object.
func componentOf(t Type, object *unstructured.Unstructured) Component {
	c := Component{Object: object, Type: t}
	if status, ok := object.Object["status"].(map[string]any); ok {
		serialised, err := json.Marshal(status)
		if err == nil {
			err = json.Unmarshal(serialised, &c.Status)
		}
		if err != nil {
			c.Mistake = fmt.Errorf("the status of %s cannot be read: %w", c, err)
		}
	}
	c.Reconciler = c.Status.Reconciler
	return c
}

// Selection selects components of a type.
type Selection struct {
	// Namespace is empty for all, and for a type without namespaces.
	Namespace string
	// Selector is nil for all.
	Selector labels.Selector
	// Name is empty for all.
	Name string
}

func (s Selection) options() *client.ListOptions {
	options := &client.ListOptions{Namespace: s.Namespace, LabelSelector: s.Selector}
	if s.Name != "" {
		options.Raw = &metav1.ListOptions{FieldSelector: "metadata.name=" + s.Name}
	}
	return options
}

// page bounds an answer.
const page = 500

// List calls a function with each component, page by page, so that a large fleet does not have to fit into memory. It
// returns the resourceVersion of the list, from which Watch goes on.
func (r *Reader) List(ctx context.Context, t Type, s Selection, each func(Component) error) (string, error) {
	resourceVersion := "" // after an error the next page may still be read
	lister := pager.New(func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(t.GroupVersion().WithKind(t.Kind + "List"))
		options := s.options()
		options.Limit, options.Continue = raw.Limit, raw.Continue
		if err := r.Client.List(ctx, list, options); err != nil {
			return nil, err
		}
		if resourceVersion == "" {
			resourceVersion = list.GetResourceVersion()
		}
		return list, nil
	})
	lister.PageSize, lister.PageBufferSize = page, 1
	err := lister.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		item, ok := object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the server answered a list of %s with a %T", t, object)
		}
		return each(withoutItems(t, item))
	})
	if err != nil {
		return "", fmt.Errorf("list %s: %w", t, err)
	}
	return resourceVersion, nil
}

// withoutItems reads a component of a list. The items of its inventory may be the larger part of it.
func withoutItems(t Type, object *unstructured.Unstructured) Component {
	unstructured.RemoveNestedField(object.Object, "status", "inventory", "objects")
	return componentOf(t, object)
}

// Get reads one component. The namespace is ignored for a type without namespaces.
func (r *Reader) Get(ctx context.Context, t Type, key client.ObjectKey) (Component, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(t.GroupVersionKind)
	if !t.Namespaced {
		key.Namespace = ""
	}
	if err := r.Client.Get(ctx, key, object); err != nil {
		return Component{}, fmt.Errorf("read %s %s: %w", t.Kind, strings.TrimPrefix(key.String(), "/"), err)
	}
	return componentOf(t, object), nil
}

// Event is a change of a component.
type Event struct {
	Component Component
	// Deleted: it is gone.
	Deleted bool
}

// Watch calls a function with each change after a resourceVersion, until the context ends. A watch that the server
// ends is started again; one that cannot be started is the error. After an error that IsExpired a list tells what is
// there; what was deleted meanwhile is not reported.
func (r *Reader) Watch(ctx context.Context, t Type, s Selection, resourceVersion string, each func(Event) error) error {
	for ctx.Err() == nil {
		started := time.Now()
		err := r.watchOnce(ctx, t, s, &resourceVersion, each)
		switch {
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("watch %s: %w", t, err)
		}
		select { // a server that ends each watch at once is not asked in a loop
		case <-ctx.Done():
		case <-time.After(max(shortest-time.Since(started), 0)):
		}
	}
	return ctx.Err()
}

// IsExpired reports whether a watch ended because the server does not know the resourceVersion any more.
func IsExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// shortest is the least time between the starts of two watches.
const shortest = time.Second

func (r *Reader) watchOnce(ctx context.Context, t Type, s Selection, resourceVersion *string, each func(Event) error) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(t.GroupVersion().WithKind(t.Kind + "List"))
	options := s.options()
	if options.Raw == nil {
		options.Raw = &metav1.ListOptions{}
	}
	options.Raw.ResourceVersion, options.Raw.AllowWatchBookmarks = *resourceVersion, true
	watcher, err := r.Client.Watch(ctx, list, options)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		*resourceVersion = object.GetResourceVersion()
		if event.Type == watch.Bookmark {
			continue
		}
		if err := each(Event{Component: withoutItems(t, object), Deleted: event.Type == watch.Deleted}); err != nil {
			return err
		}
	}
	return nil
}
