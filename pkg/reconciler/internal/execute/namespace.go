// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// readContents lists the objects in the namespace of a step that would go with it and are not
// ignored. Its String is empty if there are none. A type that cannot be read may hide content: an
// unknown object is not absent. At is a resourceVersion, if the content of an earlier moment is
// meant.
func (e *Executor) readContents(ctx context.Context, step plan.Step, at string) (*namespaceContents, error) {
	namespace := step.Key.Name
	readable, unreadable, err := e.types.Namespaced(ctx)
	if err != nil {
		return nil, err
	}
	found := &namespaceContents{namespace: namespace, byUID: map[types.UID]contentObject{}, listedTypes: map[schema.GroupKind]bool{}}
	for _, gv := range slices.SortedFunc(maps.Keys(unreadable), func(a, b schema.GroupVersion) int { return cmp.Compare(a.String(), b.String()) }) {
		found.addUnread(gv.String(), unreadable[gv])
	}
	lists := make([]typeListing, len(readable))
	var group errgroup.Group
	group.SetLimit(e.options.Parallelism)
	for i, resource := range readable {
		if !resource.Can("list") || !resource.Can("delete") || slices.Contains(ignoredTypes, resource.GVR.GroupResource()) {
			continue
		}
		group.Go(func() error {
			var err error
			lists[i], err = e.list(ctx, resource, namespace, at)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("read what lives in it: %w", err)
	}
	for i, list := range lists {
		found.add(readable[i], list)
	}
	return found, nil
}

type typeListing struct {
	objects []contentObject
	// complete: these are all objects of the type.
	complete bool
	// more: there are more objects, which were not read.
	more bool
	// unread is why the type cannot be read.
	unread error
}

// list reads the metadata of the objects of a type. It ends early when an object shows
// that the namespace is in use.
func (e *Executor) list(ctx context.Context, resource cluster.Resource, namespace, at string) (typeListing, error) {
	var all typeListing
	options := metav1.ListOptions{Limit: pageSize, ResourceVersion: at}
	for {
		page, err := e.objects.ListMetadata(ctx, resource, namespace, options)
		if err != nil {
			return e.listFailure(ctx, resource, err)
		}
		for _, item := range page.Items {
			going := item.DeletionTimestamp != nil || e.removed[item.UID] || isStandard(resource, item)
			all.objects = append(all.objects, contentObject{resource.GVR, item.UID, going, item.OwnerReferences})
		}
		options.Continue = page.Continue
		if options.Continue == "" {
			all.complete = true
			return all, nil
		}
		if slices.ContainsFunc(all.objects, func(o contentObject) bool { return !o.going && len(o.owners) == 0 }) {
			all.more = true
			return all, nil
		}
	}
}

// listFailure returns the listing of a type whose objects could not be listed.
func (e *Executor) listFailure(ctx context.Context, resource cluster.Resource, err error) (typeListing, error) {
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	switch {
	case unserved:
		// The type was just removed, perhaps.
		unservedErr := err
		_, err := e.types.Resolve(ctx, resource.GVK())
		_, gone := errors.AsType[*cluster.NotServedError](err)
		if gone {
			return typeListing{}, nil
		}
		return typeListing{unread: cmp.Or(err, unservedErr)}, nil
	case apierrors.IsMethodNotSupported(err):
		return typeListing{}, nil // its objects are computed, not stored
	case ctx.Err() != nil, cluster.IsUnreachable(err) && cluster.IsBuiltIn(resource.GVR.Group):
		return typeListing{}, err // the API server itself does not answer
	default:
		return typeListing{unread: err}, nil
	}
}

// whyUnread returns why a type or a version of a group cannot be read, in the same words as long as
// the reason is the same.
func whyUnread(err error) string {
	reason := apierrors.ReasonForError(err)
	_, stale := errors.AsType[discovery.StaleGroupVersionError](err)
	switch {
	case cluster.IsUnreachable(err), stale:
		return "its server does not answer"
	case reason != metav1.StatusReasonUnknown:
		return string(reason)
	default:
		return "it cannot be discovered"
	}
}

type namespaceContents struct {
	namespace string
	byUID     map[types.UID]contentObject
	// listedTypes are the types of which all objects were read.
	listedTypes map[schema.GroupKind]bool
	objects     []contentObject
	// forbidden are the types that may not be read, failing the types that cannot be read at the
	// moment, with the reason.
	forbidden, failing []string
	more               bool
}

func (c *namespaceContents) add(resource cluster.Resource, list typeListing) {
	if list.unread != nil {
		c.addUnread(resource.GVR.GroupResource().String(), list.unread)
		return
	}
	c.listedTypes[resource.GVK().GroupKind()] = list.complete
	c.more = c.more || list.more
	for _, object := range list.objects {
		c.byUID[object.uid] = object
		c.objects = append(c.objects, object)
	}
}

// addUnread notes that a type, or a version of a group, cannot be read.
func (c *namespaceContents) addUnread(name string, err error) {
	if apierrors.IsForbidden(err) {
		c.forbidden = append(c.forbidden, name)
	} else {
		c.failing = append(c.failing, fmt.Sprintf("%s (%s)", name, whyUnread(err)))
	}
}

// describeUnread names the types that could not be read; empty if all were read.
func (c *namespaceContents) describeUnread() string {
	var parts []string
	if len(c.failing) > 0 {
		parts = append(parts, "types that cannot be read: "+enumerate(c.failing, len(c.failing)))
	}
	if len(c.forbidden) > 0 {
		parts = append(parts, "types that may not be listed: "+enumerate(c.forbidden, len(c.forbidden)))
	}
	return strings.Join(parts, "; ")
}

// String is why the namespace must stay; empty if it need not.
func (c *namespaceContents) String() string {
	var parts []string
	if n := c.blocking(); n > 0 {
		live := "live"
		if n == 1 {
			live = "lives"
		}
		parts = append(parts, fmt.Sprintf("%s %s in it (listed by kubectl get %s --namespace %s)",
			countText(n, "object", c.more), live, kubectlTypes(c.blockingTypes()), c.namespace))
	}
	if hidden := c.describeUnread(); hidden != "" {
		parts = append(parts, hidden)
	}
	return strings.Join(parts, "; ")
}

// maxBlockingTypes bounds how many types are reported that keep a namespace.
const maxBlockingTypes = 5

func (c *namespaceContents) blockingTypes() []report.AwaitedObject {
	var types []report.AwaitedObject
	for _, object := range c.objects {
		obstacle := report.AwaitedObject{Type: object.resource, Namespace: c.namespace, DeletionOnly: true}
		if len(types) < maxBlockingTypes && !c.isIgnored(object) && !slices.Contains(types, obstacle) {
			types = append(types, obstacle)
		}
	}
	return types
}

func (c *namespaceContents) blocking() (n int) {
	for _, object := range c.objects {
		if !c.isIgnored(object) {
			n++
		}
	}
	return n
}

// ignoredTypes are types of objects that controllers of the cluster create and that hold
// nothing that would be missed.
var ignoredTypes = []schema.GroupResource{
	{Resource: "events"},
	{Group: "events.k8s.io", Resource: "events"},
	{Resource: "endpoints"},
	{Group: "discovery.k8s.io", Resource: "endpointslices"},
	{Group: "coordination.k8s.io", Resource: "leases"},
}

type contentObject struct {
	resource schema.GroupVersionResource
	uid      types.UID
	// going: it is being deleted, or every namespace has one.
	going  bool
	owners []metav1.OwnerReference
}

// isStandard reports whether the control plane puts the object into every namespace.
func isStandard(resource cluster.Resource, item metav1.PartialObjectMetadata) bool {
	if resource.GVR.Group != "" {
		return false
	}
	switch resource.Kind {
	case "ServiceAccount":
		return item.Name == "default"
	case "ConfigMap":
		return item.Name == "kube-root-ca.crt"
	case "Secret":
		return strings.HasPrefix(item.Name, "default-token-") && item.Annotations["kubernetes.io/service-account.name"] == "default"
	default:
		return false
	}
}

// isIgnored reports whether the object goes away by itself: it is being deleted, or
// all its owners are gone or go away, so that the garbage collector deletes it. That
// is the state of the pods of a deleted Deployment for a moment.
func (c *namespaceContents) isIgnored(object contentObject) bool { return c.isGoing(object, 0) }

// maxChain is longer than any chain of owners. Chains could be circular.
const maxChain = 10

func (c *namespaceContents) isGoing(object contentObject, depth int) bool {
	if object.going {
		return true
	}
	if len(object.owners) == 0 || depth > maxChain {
		return false
	}
	for _, o := range object.owners {
		present, ok := c.byUID[o.UID]
		switch {
		case ok && c.isGoing(present, depth+1):
		case !ok && c.listedTypes[schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()]:
			// All objects of the owner's type were read, and it was not among them.
		default:
			return false
		}
	}
	return true
}
