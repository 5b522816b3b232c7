// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// cast are the objects that a scenario is about.
type cast struct {
	objects    []*unstructured.Unstructured // without content
	namespaces []string
}

// newCast collects every object of the manifests and every namespace of one. When the test
// has ended the objects are removed.
func newCast(t testing.TB, f *fixture, objects []*unstructured.Unstructured) *cast {
	c := &cast{namespaces: []string{f.namespace}}
	for _, object := range objects {
		c.add(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if ns := object.GetNamespace(); ns != "" && !slices.Contains(c.namespaces, ns) {
			c.namespaces = append(c.namespaces, ns)
		}
	}
	for _, ns := range c.namespaces {
		c.add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", ns)
	}
	t.Cleanup(func() { c.clear(t, f) })
	return c
}

// clear frees the server of the objects. Every operator watches the objects with its label in
// the whole cluster, so each of them would start with the objects that earlier scenarios have left.
// Namespaces stay, because it takes long to end one.
func (c *cast) clear(t testing.TB, f *fixture) {
	for _, object := range c.objects {
		if object.GetKind() == "Namespace" {
			continue
		}
		err := f.target.Delete(context.WithoutCancel(t.Context()), object)
		if client.IgnoreNotFound(err) != nil && !apimeta.IsNoMatchError(err) {
			t.Errorf("remove %s: %v", nameOf(object), err)
		}
	}
}

func (c *cast) add(gvk schema.GroupVersionKind, namespace, name string) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(namespace)
	object.SetName(name)
	same := func(o *unstructured.Unstructured) bool { return nameOf(o) == nameOf(object) }
	if !slices.ContainsFunc(c.objects, same) {
		c.objects = append(c.objects, object)
	}
}

// nameOf is "Kind namespace/name".
func nameOf(object client.Object) string {
	name := object.GetName()
	if ns := object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + name
}

// read returns the objects that exist.
func (c *cast) read(ctx context.Context, f *fixture) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, object := range c.objects {
		live := object.DeepCopy()
		switch err := f.target.Get(ctx, client.ObjectKeyFromObject(object), live); {
		case err == nil:
			found = append(found, live)
		case !isAbsent(err):
			return nil, err
		}
	}
	return found, nil
}

func isAbsent(err error) bool {
	return client.IgnoreNotFound(err) == nil || apimeta.IsNoMatchError(err)
}

// owned returns the objects of the scenario's types that have an owner of its
// namespace, in all namespaces of the scenario.
func (c *cast) owned(ctx context.Context, f *fixture) (map[string]types.UID, error) {
	found := map[string]types.UID{}
	asked := map[string]bool{}
	for _, object := range c.objects {
		for _, namespace := range c.namespaces {
			if object.GetNamespace() == "" {
				namespace = ""
			}
			gvk := object.GroupVersionKind()
			if key := gvk.String() + namespace; asked[key] {
				continue
			} else {
				asked[key] = true
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			err := f.target.List(ctx, list, client.InNamespace(namespace), client.HasLabels{reconcilerName + "/" + vocabulary.LabelOwnerID})
			if err != nil && !isAbsent(err) {
				return nil, err
			}
			for i := range list.Items {
				item := &list.Items[i]
				item.SetGroupVersionKind(gvk)
				if strings.Contains(item.Annotations[reconcilerName+"/"+vocabulary.AnnotationOwner], f.ownerOf()) {
					found[nameOf(item)] = item.UID
				}
			}
		}
	}
	return found, nil
}

// recorded returns the objects in the inventories of all components, without
// those that did their work or belong to others, and their uids.
func (f *fixture) recorded(ctx context.Context) (map[string]types.UID, error) {
	return f.onRecord(ctx, func(item v1alpha1.InventoryItem) bool {
		return item.Phase != vocabulary.PhaseCompleted && item.Phase != vocabulary.PhaseReleased
	})
}

// onRecord returns the objects of the inventories of all components that count.
func (f *fixture) onRecord(ctx context.Context, counts func(v1alpha1.InventoryItem) bool) (map[string]types.UID, error) {
	bundles := &BundleList{}
	if err := f.List(ctx, bundles, client.InNamespace(f.namespace)); err != nil {
		return nil, err
	}
	recorded := map[string]types.UID{}
	for i := range bundles.Items {
		for _, item := range bundles.Items[i].Status.Inventory.Items {
			if counts(item) {
				recorded[itemName(item)] = item.UID
			}
		}
	}
	return recorded, nil
}

func itemName(item v1alpha1.InventoryItem) string {
	return item.Kind + " " + strings.TrimPrefix(item.Namespace+"/"+item.Name, "/")
}

// snapshot returns all that exists of the scenario, in a form that is the same for
// every run that ended well: without uids, versions, times and what the server
// chooses by itself.
func (c *cast) snapshot(ctx context.Context, f *fixture, names []string) (map[string]string, error) {
	live, err := c.read(ctx, f)
	if err != nil {
		return nil, err
	}
	words := []string{f.namespace, "$NS", letters(f.namespace), "$ID"}
	shot := map[string]string{}
	for _, name := range names {
		bundle := f.named(name)
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); client.IgnoreNotFound(err) != nil {
			return nil, err
		} else if err == nil {
			words = append(words, string(bundle.UID), "$UID-"+name)
			shot["component "+name] = describe(bundle)
		}
	}
	for _, object := range live {
		if object.GetDeletionTimestamp() != nil {
			return nil, fmt.Errorf("%s is still being deleted", nameOf(object))
		}
		words = append(words, string(object.GetUID()), "$UID")
	}
	replacer := strings.NewReplacer(words...)
	for _, object := range live {
		text, err := json.Marshal(normal(object))
		if err != nil {
			return nil, err
		}
		shot[nameOf(object)] = string(text)
	}
	out := map[string]string{}
	for name, text := range shot {
		out[replacer.Replace(name)] = replacer.Replace(text)
	}
	return out, nil
}

// normal leaves out what no manifest decides.
func normal(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "generateName"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	delete(content, "status")
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(content, "spec", field)
	}
	labels := object.GetLabels()
	if id := labels[reconcilerName+"/"+vocabulary.LabelOwnerID]; id != "" {
		labels[reconcilerName+"/"+vocabulary.LabelOwnerID] = "set"
		_ = unstructured.SetNestedStringMap(content, labels, "metadata", "labels")
	}
	annotations := object.GetAnnotations()
	for _, key := range []string{vocabulary.AnnotationAutomatic, vocabulary.LabelShared} {
		if annotations[reconcilerName+"/"+key] == "" {
			continue
		}
		annotations[reconcilerName+"/"+key] = "set" // it has a hash of names that each run has anew
		_ = unstructured.SetNestedStringMap(content, annotations, "metadata", "annotations")
	}
	return content
}

// describe returns what must be the same for a component in every run.
func describe(bundle *Bundle) string {
	state, reason, _ := bundle.Status.GetState()
	progress := bundle.Status.Progress
	if bundle.DeletionTimestamp != nil {
		progress = "in deletion" // a reconcile counts what was on record when it started
	}
	lines := []string{fmt.Sprintf("%s %s %s %d conditions", state, reason, progress, len(bundle.Status.Conditions))}
	if bundle.DeletionTimestamp == nil {
		lines[0] += fmt.Sprintf(", revision %d, history %q", bundle.Status.Revision, historyInSnapshot(bundle))
	}
	for _, item := range bundle.Status.Inventory.Items {
		lines = append(lines, fmt.Sprintf("%s %q %q uid %t digest %t", itemName(item), item.Phase, item.Origin, item.UID != "", item.Digest != ""))
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n")
}
