// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/test/audit"
	"github.com/corbel-run/corbel/test/env"
)

// check expects what every end must have: exactly the desired objects, all of them
// recorded, and none created a second time.
func (s *scenario) check(t *testing.T, f *fixture, cast *cast, earlier map[string]types.UID) {
	t.Helper()
	want := []string{}
	for _, name := range s.owned {
		want = append(want, f.fill(name))
	}
	slices.Sort(want)
	owned := s.withoutRefused(f, read(t, func(ctx context.Context) (map[string]types.UID, error) { return cast.owned(ctx, f) }))
	for _, name := range names(owned) {
		if !s.endsInDeletion() && !slices.Contains(want, name) { // else it may still be at it
			t.Errorf("%s is left over", name)
		}
	}
	for _, name := range want {
		if _, there := owned[name]; !there && s.meanwhile == nil {
			t.Errorf("%s is not there, or without our label and annotation", name)
		}
	}
	// What others did may not have come through the watch yet: it is mended then. A
	// watch that goes through the past again shows, for a moment, what was purged
	// long ago; it is purged once more then, on the record, too.
	eventually(t, "the objects with our label and annotation to be those that are desired and recorded", func(ctx context.Context) (err error) {
		if owned, err = cast.owned(ctx, f); err != nil {
			return err
		}
		owned = s.withoutRefused(f, owned)
		if diff := cmp.Diff(want, append([]string{}, names(owned)...)); diff != "" {
			return errors.New("objects with our label and annotation (-want +got):\n" + diff)
		}
		recorded, err := f.recorded(ctx)
		if err != nil {
			return err
		}
		recorded = s.withoutRefused(f, recorded)
		maps.DeleteFunc(recorded, func(_ string, uid types.UID) bool { return uid == "" }) // refused, or not written yet
		if diff := cmp.Diff(recorded, owned); diff != "" {
			return errors.New("what is recorded and what is there (-recorded +there):\n" + diff)
		}
		return nil
	})
	for name, uid := range earlier {
		again := slices.ContainsFunc(s.recreated, func(n string) bool { return f.fill(n) == name })
		if now, there := owned[name]; there && now != uid && !again {
			t.Errorf("%s was created a second time", name)
		}
	}
	for _, name := range s.names() {
		bundle := f.named(name)
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle); err == nil {
			conditionstest.Check(t, conditions.For(bundle, &bundle.Status.Conditions))
		}
	}
}

// endsInDeletion reports whether a component is still being deleted at the end.
func (s *scenario) endsInDeletion() bool {
	for _, reason := range s.ends {
		if reason == vocabulary.ReasonDeletionProcessing {
			return true
		}
	}
	return false
}

// checkContent expects the objects with our label to be as the manifests say, or to
// become so if others changed them: that may not have come through the watch yet.
func (s *scenario) checkContent(t *testing.T, f *fixture) {
	t.Helper()
	if s.meanwhile != nil {
		s.awaitContent(t, f)
	} else if err := s.content(t.Context(), t, f); err != nil {
		t.Error(err)
	}
}

// awaitContent waits until the objects with our label are as the manifests say.
func (s *scenario) awaitContent(t *testing.T, f *fixture) {
	t.Helper()
	eventually(t, "the objects to be as their manifests say", func(ctx context.Context) error { return s.content(ctx, t, f) })
}

// content returns an error if objects with our label are not as the manifests say.
func (s *scenario) content(ctx context.Context, t *testing.T, f *fixture) error {
	var differ []error
	desired := maps.Clone(s.desired)
	if s.applied != nil {
		desired = map[string][]string{"main": s.applied}
	}
	for _, manifests := range desired {
		for _, want := range f.objects(t, manifests) {
			differ = append(differ, s.compare(ctx, f, want))
		}
	}
	return errors.Join(differ...)
}

// compare returns an error if an object with our label is not as it is desired.
func (s *scenario) compare(ctx context.Context, f *fixture, want *unstructured.Unstructured) error {
	live := want.DeepCopy()
	if err := f.target.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			return nil // whether it must be there is checked elsewhere
		}
		return err
	}
	if slices.ContainsFunc(s.refused, func(name string) bool { return f.fill(name) == nameOf(want) }) {
		return nil
	}
	if live.GetLabels()[reconcilerName+"/"+vocabulary.LabelOwnerID] == "" {
		return nil
	}
	delete(want.Object, "stringData")
	if !contains(live.Object, want.Object) {
		return fmt.Errorf("%s is not as its manifest says:\n%v\nwant\n%v", nameOf(want), live.Object, want.Object)
	}
	return nil
}

// contains reports whether a value has everything that is desired; in lists the
// elements are compared one by one.
func contains(value, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		has, ok := value.(map[string]any)
		for key := range want {
			ok = ok && contains(has[key], want[key])
		}
		return ok
	case []any:
		has, ok := value.([]any)
		ok = ok && len(has) == len(want)
		for i := range want {
			ok = ok && contains(has[i], want[i])
		}
		return ok
	default:
		return value == want
	}
}

// versions returns uid and resourceVersion of objects.
func (f *fixture) versions(t testing.TB, texts []string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, object := range f.objects(t, texts) {
		name := nameOf(object)
		if err := f.target.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			versions[name] = err.Error()
			continue
		}
		versions[name] = string(object.GetUID()) + " " + object.GetResourceVersion()
	}
	return versions
}

func names(objects map[string]types.UID) []string { return slices.Sorted(maps.Keys(objects)) }

// user is the operator's name in the audit log.
func (f *fixture) user() string { return "operator-" + f.namespace }

// audit checks, when the test has ended, every write of the operators that it has
// started.
func (f *fixture) audit(t testing.TB) {
	t.Helper()
	before, err := f.env.AuditPosition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		events, err := f.env.AuditEventsSince(context.Background(), before, f.namespace, letters(f.namespace))
		if err != nil {
			t.Error(err)
			return
		}
		about := slices.DeleteFunc(events, func(e env.AuditEvent) bool { return !f.concerns(e) })
		options := audit.Options{
			Name: reconcilerName, Component: schema.GroupResource{Group: "test.corbel.run", Resource: "widgets"}, User: f.user(),
			AdoptsReleases: f.adoptsReleases,
		}
		if !f.mayBeIdle {
			audit.Check(t, about, options)
			return
		}
		violations, _ := audit.Violations(about, options)
		for _, v := range violations {
			t.Errorf("audit: %s", v)
		}
	})
}

// concerns reports whether a request is about the fixture's objects; others are
// made by tests that go on at the same time.
func (f *fixture) concerns(e env.AuditEvent) bool {
	// The command changes objects without a namespace, too; the annotations of a release name it.
	ours := e.User == f.user() || f.adoptsReleases && bytes.Contains(e.Answered, []byte(f.namespace)) || strings.Contains(e.URI, f.namespace) || strings.Contains(e.URI, letters(f.namespace))
	if !ours && !bytes.Contains(e.Answered, []byte(letters(f.namespace))) {
		return false
	}
	name := writtenName(e.Answered)
	return !f.late[name] && (ours || strings.Contains(name, letters(f.namespace)))
}

// writtenName is the name of the object in a body, like that of nameOf.
func writtenName(body []byte) string {
	object := &metav1.PartialObjectMetadata{}
	if len(body) == 0 || json.Unmarshal(body, object) != nil {
		return ""
	}
	return nameOf(object)
}

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
