// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/audit"
	"github.com/corbel-run/corbel/test/bench/measure"
	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
)

// Findings are what is not as it should be, by the objects that there are. The
// client that reads them reaches the API server without the proxy.
type Findings struct {
	// Lost are objects that a component wants and that do not exist.
	Lost []string
	// Stolen are objects of others that were changed or deleted.
	Stolen []string
	// Left are objects that belong to no component.
	Left []string
	// Restless are components that are not Ready, and objects that are not as desired.
	Restless []string
}

// Len counts the findings.
func (f *Findings) Len() int { return len(f.Lost) + len(f.Stolen) + len(f.Left) + len(f.Restless) }

// all returns the findings with their kinds.
func (f *Findings) all() (all []string) {
	for _, kind := range []struct {
		name  string
		found []string
	}{{"lost", f.Lost}, {"stolen", f.Stolen}, {"left over", f.Left}, {"not at rest", f.Restless}} {
		for _, text := range kind.found {
			all = append(all, kind.name+": "+text)
		}
	}
	return all
}

// world is what there is.
type world struct {
	loads      []operator.Load
	objects    map[types.NamespacedName]corev1.ConfigMap
	namespaces []corev1.Namespace
	jobs       []batchv1.Job
}

// observe reads what belongs to the run.
func (s *soak) observe(ctx context.Context) (*world, error) {
	loads, objects, namespaces, jobs := &operator.LoadList{}, &corev1.ConfigMapList{}, &corev1.NamespaceList{}, &batchv1.JobList{}
	for _, list := range []client.ObjectList{loads, objects, namespaces, jobs} {
		if err := s.List(ctx, list); err != nil {
			return nil, err
		}
	}
	w := &world{loads: loads.Items, jobs: jobs.Items, objects: map[types.NamespacedName]corev1.ConfigMap{}}
	for _, object := range objects.Items {
		if s.isPlace(object.Namespace) && object.Name != "kube-root-ca.crt" {
			w.objects[client.ObjectKeyFromObject(&object)] = object
		}
	}
	for _, namespace := range namespaces.Items {
		if s.isPlace(namespace.Name) {
			w.namespaces = append(w.namespaces, namespace)
		}
	}
	return w, nil
}

// isPlace reports whether a namespace belongs to the run.
func (s *soak) isPlace(namespace string) bool {
	return namespace == s.namespace || strings.HasPrefix(namespace, s.namespace+"-")
}

// check compares the components and the objects of others with what there is.
func (s *soak) check(w *world) *Findings {
	f := &Findings{}
	for key, was := range s.others {
		object, there := w.objects[key]
		switch {
		case !there:
			f.Stolen = append(f.Stolen, fmt.Sprintf("ConfigMap %s of others is gone", key))
		case fingerprint(&object) != was:
			f.Stolen = append(f.Stolen, fmt.Sprintf("ConfigMap %s of others was changed", key))
		}
		delete(w.objects, key)
	}
	places := map[string]bool{s.namespace: true}
	for i := range deletedNamespaces {
		places[s.deletedNamespace(i)] = true
	}
	for i := range w.loads {
		load := &w.loads[i]
		if load.Spec.Away {
			places[operator.Away(load.Namespace, load.Name)] = true
		}
		if load.DeletionTimestamp != nil {
			f.Restless = append(f.Restless, fmt.Sprintf("component %s/%s is being deleted: %v", load.Namespace, load.Name, load.Status.Conditions))
		} else if state, reason, message := load.Status.GetState(); !load.Status.IsReady() || load.Status.ObservedGeneration != load.Generation {
			f.Restless = append(f.Restless, fmt.Sprintf("component %s/%s, generation %d, observed %d: %s (%s): %s", load.Namespace, load.Name, load.Generation, load.Status.ObservedGeneration, state, reason, message))
		}
		f.dependentsOf(load, w.objects, s.fleet.current())
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.objects), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
		object := w.objects[key]
		f.Left = append(f.Left, fmt.Sprintf("ConfigMap %s (%s)", key, tracesOf(&object.ObjectMeta)))
	}
	for i := range w.jobs {
		// The end of each is written into the status of its component.
		f.Restless = append(f.Restless, fmt.Sprintf("Job %s has not gone by its time to live", client.ObjectKeyFromObject(&w.jobs[i])))
	}
	for _, namespace := range w.namespaces {
		if !places[namespace.Name] {
			f.Left = append(f.Left, fmt.Sprintf("Namespace %s (%s)", namespace.Name, tracesOf(&namespace.ObjectMeta)))
		}
	}
	return f
}

// dependentsOf compares those of a component, and removes them from the live ones.
func (f *Findings) dependentsOf(load *operator.Load, live map[types.NamespacedName]corev1.ConfigMap, version string) {
	objects := load.Objects()
	for i := range objects.N {
		key := types.NamespacedName{Namespace: load.NamespaceOf(i), Name: objects.Name(i)}
		object, there := live[key]
		delete(live, key)
		switch {
		case !there:
			f.Lost = append(f.Lost, fmt.Sprintf("ConfigMap %s", key))
		case object.Data["all"] != objects.All || i == 0 && object.Data["one"] != objects.One || load.Spec.Versioned && object.Data["version"] != version:
			f.Restless = append(f.Restless, fmt.Sprintf("ConfigMap %s holds %v, not what component %s says", key, object.Data, load.Name))
		}
	}
}

// tracesOf names what says that an object was made by the operator; empty if nothing does.
func tracesOf(object metav1.Object) string {
	var traces []string
	for _, set := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for key := range set {
			if strings.HasPrefix(key, operator.Name+"/") {
				traces = append(traces, key)
			}
		}
	}
	for _, finalizer := range object.GetFinalizers() {
		if strings.HasPrefix(finalizer, operator.Name) {
			traces = append(traces, "finalizer "+finalizer)
		}
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == operator.Name {
			traces = append(traces, "manager "+entry.Manager)
		}
	}
	return strings.Join(traces, ", ")
}

// search lists all objects of all types, and returns those that the operator has made
// and that are neither a component, nor one of its objects, nor the operator's own.
func (s *soak) search(ctx context.Context) (left []string, err error) {
	client, err := discovery.NewDiscoveryClientForConfig(s.env.Config())
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	components := map[string]bool{}
	w, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	for _, load := range w.loads {
		components[string(load.UID)] = true
	}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			found, err := s.searchOne(ctx, schema.FromAPIVersionAndKind(list.GroupVersion, resource.Kind), resource, components)
			if err != nil {
				return nil, err
			}
			left = append(left, found...)
		}
	}
	return left, nil
}

func (s *soak) searchOne(ctx context.Context, gvk schema.GroupVersionKind, resource metav1.APIResource, components map[string]bool) (left []string, err error) {
	switch {
	case !slices.Contains(resource.Verbs, "list"), gvk.Kind == "Event", gvk.Kind == "Load", gvk.Kind == "ConfigMap", gvk.Kind == "Namespace":
		return nil, nil // the last three are checked in another way
	}
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := s.List(ctx, objects); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list %s: %w", gvk, err)
	}
	for i := range objects.Items {
		object := &objects.Items[i]
		own := gvk.Kind == "Secret" && object.Name == operator.Name+"-digest-key"
		owner := object.Annotations[operator.Name+"/"+vocabulary.AnnotationOwner]
		owned := components[object.Labels[operator.Name+"/inventory-of"]] || components[owner[strings.LastIndex(owner, "/")+1:]] ||
			slices.ContainsFunc(object.OwnerReferences, func(ref metav1.OwnerReference) bool { return components[string(ref.UID)] }) // the history
		if traces := tracesOf(object); traces != "" && !own && !owned {
			left = append(left, fmt.Sprintf("%s %s/%s (%s)", gvk.Kind, object.Namespace, object.Name, traces))
		}
	}
	return left, nil
}

// audit checks every write of the operator.
func (s *soak) audit(ctx context.Context) error {
	events, err := s.env.AuditEvents(ctx)
	if err != nil {
		return err
	}
	violations, checked := audit.Violations(events, audit.Options{
		Name:      operator.Name,
		Component: schema.GroupResource{Group: operator.GroupVersion.Group, Resource: "loads"},
		User:      measure.User(report.Corbel),
		Killed:    s.killed,
		Restored:  s.restored,
	})
	s.outcome.Audited = checked
	for _, violation := range violations {
		s.outcome.Violations = append(s.outcome.Violations, violation.String())
	}
	return nil
}
