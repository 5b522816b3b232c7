// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationhelper "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
)

// instances counts the instances of the types that a CustomResourceDefinition or
// an APIService defines. Deleting the former deletes them all, whatever their owner.
// Those with the uids in kept are counted separately.
func (e *Executor) instances(ctx context.Context, owner plan.Owner, key plan.Key, owns Owns, kept []types.UID) (*instanceCount, error) {
	found := &instanceCount{owns: owns, owner: owner, kept: kept, removed: e.removed}
	if !strings.Contains(key.Name, ".") {
		return nil, fmt.Errorf("the name does not say which types it brings")
	}
	switch key.GroupKind() {
	case definitionKind:
		return found, e.definedInstances(ctx, found, key.Name)
	case apiServiceKind:
		return found, e.aggregatedInstances(ctx, found, apiregistrationhelper.APIServiceNameToGroupVersion(key.Name))
	default:
		return nil, fmt.Errorf("objects of kind %s bring no types", key.Kind)
	}
}

// definedInstances counts the instances of a CustomResourceDefinition. All versions show the same
// objects; the first one that can be listed will do, because a conversion between versions may be
// out of order.
func (e *Executor) definedInstances(ctx context.Context, found *instanceCount, definition string) error {
	versions, failures := e.definedTypes(ctx, definition)
	for _, resource := range versions {
		one := &instanceCount{owns: found.owns, owner: found.owner, kept: found.kept, removed: found.removed}
		err := one.addType(ctx, e.objects, resource, "")
		if err == nil {
			*found = *one
			return nil
		}
		failures = append(failures, err)
	}
	switch {
	case len(failures) == 0:
		return e.unservedInstances(ctx, found, definition)
	case e.isRemoved(ctx, definition, failures):
		return nil
	default:
		return fmt.Errorf("whether instances exist is not known: %w", errors.Join(failures...))
	}
}

// isRemoved reports whether the instances of a definition could not be listed because it was just removed, and they with it.
func (e *Executor) isRemoved(ctx context.Context, name string, failures []error) bool {
	isServed := func(err error) bool {
		_, unserved := errors.AsType[*cluster.UnservedPathError](err)
		return !unserved
	}
	if slices.ContainsFunc(failures, isServed) {
		return false
	}
	_, err := e.objects.Get(ctx, definitions, "", name)
	return cluster.IsNotFound(err, definitions, name)
}

// definedTypes returns the served versions of the type that the definition of
// the name brings.
func (e *Executor) definedTypes(ctx context.Context, definition string) (resources []cluster.Resource, failures []error) {
	plural, group, _ := strings.Cut(definition, ".")
	versions, err := e.types.Versions(ctx, group)
	if err != nil {
		return nil, []error{err}
	}
	for _, version := range versions {
		kinds, err := e.types.Kinds(ctx, schema.GroupVersion{Group: group, Version: version})
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, resource := range kinds {
			if resource.GVR.Resource == plural {
				resources = append(resources, resource)
			}
		}
	}
	return resources, failures
}

var definitions = cluster.Resource{
	GVR:  schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	Kind: "CustomResourceDefinition",
}

// unservedInstances is about a definition of which the server serves no version.
// If it was never established, nothing can have been stored.
func (e *Executor) unservedInstances(ctx context.Context, found *instanceCount, name string) error {
	definition, err := e.objects.Get(ctx, definitions, "", name)
	if cluster.IsNotFound(err, definitions, name) {
		return nil
	}
	if err != nil {
		return err
	}
	if isEstablished(definition) {
		found.unknown = append(found.unknown, "no version of it is served, so that its instances cannot be counted")
	}
	return nil
}

func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["type"] == "Established" && fields["status"] == "True"
	})
}

// aggregatedInstances counts the instances of the types of an aggregated server.
// The deletion of an APIService deletes none of them, it only hides them. So a
// server that does not answer, as it is removed before its APIService, does not
// keep the latter alive. Types that can only be read, such as metrics, hold nothing.
func (e *Executor) aggregatedInstances(ctx context.Context, found *instanceCount, gv schema.GroupVersion) error {
	kinds, err := e.types.Kinds(ctx, gv)
	if isOutOfOrder(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		resource := kinds[kind]
		if !resource.Can("list") || !resource.Can("delete") {
			continue
		}
		err := found.addType(ctx, e.objects, resource, "")
		if err != nil && !isOutOfOrder(err) && !apierrors.IsMethodNotSupported(err) {
			return err
		}
	}
	return nil
}

func isOutOfOrder(err error) bool {
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	return unserved || apierrors.IsServiceUnavailable(err)
}

const (
	// maxNamed is how many objects a sentence names.
	maxNamed = 5
	// pageSize is the size of the pages in which objects are listed.
	pageSize = 500
	// maxPages is how many pages of one type are read at most, when instances are counted.
	//
	// Unit: pages
	// Limit: the pages of 500 instances that are read of one type before it is deleted.
	maxPages = 20
)

// Owns reports whether an instance is in our inventory. All other instances are foreign, also those
// that we created and then orphaned.
type Owns func(key plan.Key, uid types.UID) bool

// instanceCount counts the instances of types, foreign ones and our own.
type instanceCount struct {
	owns Owns
	// owner is the owner of the types.
	owner plan.Owner
	// kept are the uids of orphaned instances, if they are counted separately.
	kept      []types.UID
	keptTotal int
	// removed are the uids of the instances that are not counted.
	removed map[types.UID]bool
	// foreign and ours are the names of the first few; of the foreign ones, those in the namespace of the
	// owner. Readers of a status are tenants of that namespace.
	foreign, ours           []string
	foreignTotal, oursTotal int
	deleting                int // of ours, being deleted
	truncated               bool
	// types are the types with foreign instances.
	types []report.AwaitedObject
	// counted is the last type that was counted.
	counted *cluster.Resource
	// unknown are sentences about types that cannot be counted.
	unknown []string
}

// addType counts the instances of a type. A first list of two instances at most
// shows whether there are any; only then all are read, because our own may come
// before the foreign ones. Both come from a quorum of the storage, so an
// instance that was created before is seen.
//
// At is a resourceVersion, if the instances of an earlier moment are meant.
func (c *instanceCount) addType(ctx context.Context, objects *cluster.Objects, resource cluster.Resource, at string) error {
	c.counted = &resource
	options := metav1.ListOptions{Limit: 2, ResourceVersion: at}
	for page := 0; ; page++ {
		list, err := objects.ListMetadata(ctx, resource, "", options)
		if err != nil {
			return fmt.Errorf("list the instances of %s: %w", resource.Kind, err)
		}
		if page == 0 && list.Continue != "" {
			options.Limit = pageSize // from the beginning
			continue
		}
		for _, item := range list.Items {
			c.addInstance(resource, item)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
		if page == maxPages {
			c.truncated = true
			return nil
		}
	}
}

func (c *instanceCount) addInstance(resource cluster.Resource, item metav1.PartialObjectMetadata) {
	key := plan.Key{Group: resource.GVR.Group, Kind: resource.Kind, Namespace: item.Namespace, Name: item.Name}
	name := key.String()
	if c.removed[item.UID] {
		return
	}
	if c.owns != nil && c.owns(key, item.UID) {
		c.oursTotal++
		if item.DeletionTimestamp != nil {
			c.deleting++
		}
		if len(c.ours) < maxNamed {
			c.ours = append(c.ours, name)
		}
		return
	}
	if slices.Contains(c.kept, item.UID) {
		c.keptTotal++
		return
	}
	c.foreignTotal++
	if obstacle := (report.AwaitedObject{Type: resource.GVR, DeletionOnly: true}); !slices.Contains(c.types, obstacle) {
		c.types = append(c.types, obstacle)
	}
	if item.DeletionTimestamp != nil {
		name += " (being deleted)"
	}
	if item.Namespace == c.owner.Ref.Namespace && len(c.foreign) < maxNamed {
		c.foreign = append(c.foreign, name)
	}
}

// describeBlocking returns why the types must stay until another client did something: foreign
// instances, and types that cannot be counted. Empty means none.
func (c *instanceCount) describeBlocking() string {
	var parts []string
	if c.foreignTotal > 0 {
		text := countText(c.foreignTotal, "foreign instance", c.truncated)
		if len(c.foreign) > 0 {
			text += ": " + enumerate(c.foreign, c.foreignTotal)
		}
		if len(c.foreign) < c.foreignTotal {
			text += fmt.Sprintf(" (listed by kubectl get %s --all-namespaces)", kubectlTypes(c.types))
		}
		parts = append(parts, text)
	}
	return strings.Join(append(parts, c.unknown...), "; ")
}

// kubectlTypes returns the types in the form in which kubectl accepts them.
func kubectlTypes(types []report.AwaitedObject) string {
	var names []string
	for _, t := range types {
		if name := t.Type.GroupResource().String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names[:min(len(names), maxNamed)], ",")
}

// String is why the types cannot be deleted at this moment: any instance of
// theirs would go with them. Empty means that there are none.
func (c *instanceCount) String() string {
	var parts []string
	if text := c.describeBlocking(); text != "" {
		parts = append(parts, text)
	}
	if c.oursTotal > 0 {
		state := "that must go first"
		if c.deleting == c.oursTotal {
			state = "still being deleted"
		}
		parts = append(parts, countText(c.oursTotal, "instance", false)+" of ours "+state+": "+enumerate(c.ours, c.oursTotal))
	}
	return strings.Join(parts, "; ")
}

func countText(n int, what string, more bool) string {
	if n != 1 {
		what += "s"
	}
	if more {
		return fmt.Sprintf("more than %d %s", n, what)
	}
	return fmt.Sprintf("%d %s", n, what)
}

func enumerate(names []string, total int) string {
	shown := names[:min(len(names), maxNamed)]
	text := strings.Join(shown, ", ")
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ForeignInstancesOf returns a sentence about the instances, other than our own, of the types that
// a CustomResourceDefinition or an APIService defines, and these types; empty means that there are
// none. It names only instances that the owner may know of.
func (e *Executor) ForeignInstancesOf(ctx context.Context, owner plan.Owner, key plan.Key, owns Owns) (string, []report.AwaitedObject, error) {
	found, err := e.instances(ctx, owner, key, owns, nil)
	if err != nil {
		return "", nil, err
	}
	return found.describeBlocking(), found.types, nil
}

// ForeignInstances returns a sentence about the instances, other than our own, of the types that
// match a pattern and are served at this moment, and these types; empty means that there are none.
// Types without the verbs list and delete, such as metrics, hold nothing that could be lost. A
// group that matches is named as well if the server does not list its types or objects: an unknown
// object is not absent.
func (e *Executor) ForeignInstances(ctx context.Context, owner plan.Owner, pattern v1alpha1.TypeInfo, owns Owns) (string, []report.AwaitedObject, error) {
	matching, unknown, err := e.types.Matching(ctx, pattern)
	if err != nil {
		return "", nil, err
	}
	found := &instanceCount{owns: owns, owner: owner}
	for _, gv := range unknown {
		found.unknown = append(found.unknown, fmt.Sprintf("the server cannot list the types of %s at the moment", gv))
	}
	for _, resource := range matching {
		if !resource.Can("list") || !resource.Can("delete") {
			continue
		}
		if err := found.addType(ctx, e.objects, resource, ""); err != nil {
			sentence, err := e.uncounted(ctx, resource, err)
			if err != nil {
				return "", nil, err
			}
			if sentence != "" {
				found.unknown = append(found.unknown, sentence)
			}
		}
	}
	return found.describeBlocking(), found.types, nil
}

// uncounted returns a sentence about a type if its instances could not be listed.
func (e *Executor) uncounted(ctx context.Context, resource cluster.Resource, err error) (sentence string, _ error) {
	what := resource.Kind + " of " + resource.GVR.GroupVersion().String()
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	switch {
	case unserved:
		_, err := e.types.Resolve(ctx, resource.GVK())
		if _, gone := errors.AsType[*cluster.NotServedError](err); gone {
			return "", nil // the type was just removed
		}
		return "instances of " + what + " cannot be listed", nil
	case apierrors.IsMethodNotSupported(err):
		return "", nil // they are computed, not stored
	case apierrors.IsForbidden(err):
		return "we are not allowed to list instances of " + what, nil
	case apierrors.IsServiceUnavailable(err):
		return "the server of " + what + " does not answer", nil
	default:
		return "", err
	}
}
