// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// contentPage is the size of the pages in which the content of a namespace is read.
const contentPage = 500

// content looks for objects in a namespace that would go with it and are not
// noise. Its String is empty if there are none. A type that cannot be read counts
// as content: what is not known is not absent. At is a resourceVersion, if the
// content of an earlier moment is meant.
func (e *Executor) content(ctx context.Context, namespace, at string) (*inhabitants, error) {
	readable, unreadable, err := e.types.Namespaced(ctx)
	if err != nil {
		return nil, err
	}
	found := newInhabitants(readable)
	for _, gv := range unreadable {
		found.hidden = append(found.hidden, gv.String())
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
	// refused: the type cannot be read.
	refused bool
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
		_, err := e.types.Resolve(ctx, resource.GVK())
		_, gone := errors.AsType[*cluster.NotServedError](err)
		return listed{refused: !gone}, nil
	case apierrors.IsMethodNotSupported(err):
		return listed{}, nil // its objects are computed, not stored
	case apierrors.IsForbidden(err) || apierrors.IsServiceUnavailable(err):
		return listed{refused: true}, nil
	default:
		return listed{}, err
	}
}

// inhabitants are the objects found in a namespace.
type inhabitants struct {
	byUID map[string]inhabitant
	// known are the types whose objects were all read.
	known   map[schema.GroupKind]bool
	objects []inhabitant
	hidden  []string // types that cannot be read
	more    bool
}

func newInhabitants(readable []cluster.Resource) *inhabitants {
	return &inhabitants{byUID: map[string]inhabitant{}, known: make(map[schema.GroupKind]bool, len(readable))}
}

func (c *inhabitants) add(resource cluster.Resource, list listed) {
	if list.refused {
		c.hidden = append(c.hidden, resource.GVR.GroupResource().String())
		return
	}
	c.known[resource.GVK().GroupKind()] = list.all
	c.more = c.more || list.more
	for _, object := range list.objects {
		c.byUID[object.uid] = object
		c.objects = append(c.objects, object)
	}
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
		parts = append(parts, fmt.Sprintf("%s %s in it: %s", count, what, enumerate(names, len(names))))
	}
	if len(c.hidden) > 0 {
		parts = append(parts, "types that cannot be read: "+enumerate(c.hidden, len(c.hidden)))
	}
	return strings.Join(parts, "; ")
}

// maxObstacles is of how many types it is told that their objects keep a namespace.
const maxObstacles = 5

// obstacles are the types of the objects that are no noise.
func (c *inhabitants) obstacles(namespace string) []plan.Obstacle {
	var types []plan.Obstacle
	for _, object := range c.objects {
		obstacle := plan.Obstacle{Type: object.resource, Namespace: namespace}
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
