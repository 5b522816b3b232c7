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
	"k8s.io/client-go/discovery"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// contentPage is the size of the pages in which the content of a namespace is read.
const contentPage = 500

// content looks for objects in the namespace of a step that would go with it and are not
// noise. Its String is empty if there are none. A type that cannot be read may
// hide content: what is not known is not absent. At is a resourceVersion, if the
// content of an earlier moment is meant.
func (e *Executor) content(ctx context.Context, step plan.Step, at string) (*inhabitants, error) {
	namespace := step.Key.Name
	readable, unreadable, err := e.types.Namespaced(ctx)
	if err != nil {
		return nil, err
	}
	found := newInhabitants(step, readable)
	for _, gv := range slices.SortedFunc(maps.Keys(unreadable), func(a, b schema.GroupVersion) int { return cmp.Compare(a.String(), b.String()) }) {
		found.hide(gv.String(), unreadable[gv])
	}
	lists := make([]listed, len(readable))
	var group errgroup.Group
	group.SetLimit(e.options.Parallelism)
	for i, resource := range readable {
		if !resource.Can("list") || !resource.Can("delete") || slices.Contains(noisyTypes, resource.GVR.GroupResource()) {
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

// listed is what was found of one type.
type listed struct {
	objects []inhabitant
	// all: these are all objects of the type.
	all bool
	// more: there are more objects, which were not read.
	more bool
	// unread is why the type cannot be read.
	unread error
}

// list reads the metadata of the objects of a type. It ends early when it has
// found enough to say that the namespace is in use.
func (e *Executor) list(ctx context.Context, resource cluster.Resource, namespace, at string) (listed, error) {
	var all listed
	options := cluster.ListOptions{Limit: contentPage, At: at}
	for {
		page, err := e.objects.ListMetadata(ctx, resource, namespace, options)
		if err != nil {
			return e.unlisted(ctx, resource, err)
		}
		for _, item := range page.Items {
			all.objects = append(all.objects, inhabitantOf(resource, item))
		}
		options.Continue = page.Continue
		if options.Continue == "" {
			all.all = true
			return all, nil
		}
		if slices.ContainsFunc(all.objects, func(o inhabitant) bool { return o.stays() }) {
			all.more = true
			return all, nil
		}
	}
}

// unlisted judges a type whose objects could not be listed.
func (e *Executor) unlisted(ctx context.Context, resource cluster.Resource, err error) (listed, error) {
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	switch {
	case unserved:
		// The type was just removed, perhaps.
		unservedErr := err
		_, err := e.types.Resolve(ctx, resource.GVK())
		_, gone := errors.AsType[*cluster.NotServedError](err)
		if gone {
			return listed{}, nil
		}
		return listed{unread: cmp.Or(err, unservedErr)}, nil
	case apierrors.IsMethodNotSupported(err):
		return listed{}, nil // its objects are computed, not stored
	case ctx.Err() != nil, cluster.IsUnreachable(err) && cluster.IsBuiltIn(resource.GVR.Group):
		return listed{}, err // the API server itself does not answer
	default:
		return listed{unread: err}, nil
	}
}

// whyUnread says why a type or a version of a group cannot be read, in the same words
// as long as the reason is the same.
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

// inhabitants are the objects found in a namespace.
type inhabitants struct {
	namespace string
	// owner is on whose behalf they were looked for.
	owner plan.Owner
	byUID map[string]inhabitant
	// known are the types whose objects were all read.
	known   map[schema.GroupKind]bool
	objects []inhabitant
	// forbidden are the types that may not be read, failing those that cannot be
	// read at the moment, with the reason.
	forbidden, failing []string
	more               bool
}

func newInhabitants(step plan.Step, readable []cluster.Resource) *inhabitants {
	return &inhabitants{namespace: step.Key.Name, owner: step.Owner, byUID: map[string]inhabitant{}, known: make(map[schema.GroupKind]bool, len(readable))}
}

func (c *inhabitants) add(resource cluster.Resource, list listed) {
	if list.unread != nil {
		c.hide(resource.GVR.GroupResource().String(), list.unread)
		return
	}
	c.known[resource.GVK().GroupKind()] = list.all
	c.more = c.more || list.more
	for _, object := range list.objects {
		c.byUID[object.uid] = object
		c.objects = append(c.objects, object)
	}
}

// hide notes that a type, or a version of a group, cannot be read.
func (c *inhabitants) hide(name string, err error) {
	if apierrors.IsForbidden(err) {
		c.forbidden = append(c.forbidden, name)
	} else {
		c.failing = append(c.failing, fmt.Sprintf("%s (%s)", name, whyUnread(err)))
	}
}

// hidden says what cannot be read; empty if everything was.
func (c *inhabitants) hidden() string {
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
func (c *inhabitants) String() string {
	var parts []string
	if names := c.names(); len(names) > 0 {
		count, what := fmt.Sprint(len(names)), "objects live"
		if c.more {
			count = "more than " + count
		} else if len(names) == 1 {
			what = "object lives"
		}
		which := ": " + enumerate(names, len(names))
		if !maySee(c.owner, c.namespace) {
			which = fmt.Sprintf(" (listed by kubectl get %s --namespace %s)", listable(c.obstacles()), c.namespace)
		}
		parts = append(parts, fmt.Sprintf("%s %s in it%s", count, what, which))
	}
	if hidden := c.hidden(); hidden != "" {
		parts = append(parts, hidden)
	}
	return strings.Join(parts, "; ")
}

// lost is what can be said of objects that do not exist any more.
func (c *inhabitants) lost() string {
	names := c.names()
	if maySee(c.owner, c.namespace) {
		return enumerate(names, len(names))
	}
	return fmt.Sprintf("%s (%s)", amount(len(names), "object", c.more), listable(c.obstacles()))
}

// maxObstacles is of how many types it is told that their objects keep a namespace.
const maxObstacles = 5

// obstacles are the types of the objects that are no noise.
func (c *inhabitants) obstacles() []plan.BlockingType {
	var types []plan.BlockingType
	for _, object := range c.objects {
		obstacle := plan.BlockingType{Type: object.resource, Namespace: c.namespace}
		if len(types) < maxObstacles && !c.isNoise(object) && !slices.Contains(types, obstacle) {
			types = append(types, obstacle)
		}
	}
	return types
}

// names are the objects that are no noise.
func (c *inhabitants) names() []string {
	var names []string
	for _, object := range c.objects {
		if !c.isNoise(object) {
			names = append(names, object.name)
		}
	}
	return names
}

// noisyTypes are types whose objects come by themselves and hold nothing that
// anybody would miss.
var noisyTypes = []schema.GroupResource{
	{Resource: "events"},
	{Group: "events.k8s.io", Resource: "events"},
	{Resource: "endpoints"},
	{Group: "discovery.k8s.io", Resource: "endpointslices"},
	{Group: "coordination.k8s.io", Resource: "leases"},
}

// inhabitant is an object in a namespace, as far as its metadata tell.
type inhabitant struct {
	resource    schema.GroupVersionResource
	name, uid   string
	terminating bool
	standard    bool // every namespace has one
	owners      []owner
}

type owner struct {
	uid  string
	kind schema.GroupKind
}

func inhabitantOf(resource cluster.Resource, item metav1.PartialObjectMetadata) inhabitant {
	object := inhabitant{
		resource:    resource.GVR,
		name:        resource.Kind + " " + item.Name,
		uid:         string(item.UID),
		terminating: item.DeletionTimestamp != nil,
		standard:    isStandard(resource, item),
	}
	for _, reference := range item.OwnerReferences {
		object.owners = append(object.owners, owner{
			uid:  string(reference.UID),
			kind: schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind(),
		})
	}
	return object
}

// isStandard tells whether the control plane puts the object into every namespace.
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

// stays tells, without a look at others, that the object is no noise.
func (o inhabitant) stays() bool { return !o.terminating && !o.standard && len(o.owners) == 0 }

// isNoise tells whether the object goes away by itself: it is being deleted, or
// all its owners are gone or go away, so that garbage collection takes it. That
// is how the pods of a deleted Deployment look for a moment.
func (c *inhabitants) isNoise(object inhabitant) bool { return c.goes(object, 0) }

// maxChain is longer than any chain of owners. Chains could be circular.
const maxChain = 10

func (c *inhabitants) goes(object inhabitant, depth int) bool {
	if object.terminating || object.standard {
		return true
	}
	if len(object.owners) == 0 || depth > maxChain {
		return false
	}
	for _, o := range object.owners {
		present, ok := c.byUID[o.uid]
		switch {
		case ok && c.goes(present, depth+1):
		case !ok && c.known[o.kind]:
			// All objects of the owner's type were read, and it was not among them.
		default:
			return false
		}
	}
	return true
}
