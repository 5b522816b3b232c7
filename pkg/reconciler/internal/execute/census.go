// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

const (
	// maxNamed is how many objects a sentence names.
	maxNamed = 5
	// censusPage is the size of the pages in which instances are counted, and
	// maxPages how many pages of one type are read at most.
	censusPage = 500
	maxPages   = 20
)

// Owns tells whether an instance is in our inventory. All others are foreign,
// also those that we made and then left behind.
type Owns func(key plan.Key, uid types.UID) bool

// census counts the instances of types, foreign ones and our own.
type census struct {
	owns Owns
	// owner is on whose behalf they are counted.
	owner plan.Owner
	// kept are the uids of those that were left behind, if they count apart.
	kept      []types.UID
	keptTotal int
	// foreign and ours are the names of the first few.
	foreign, ours           []string
	foreignTotal, oursTotal int
	// elsewhere is how many of the foreign ones the owner is not told the names of.
	elsewhere int
	leaving   int // of ours, being deleted
	more      bool
	// types are those of which there are foreign instances.
	types []plan.Obstacle
	// counted is the last type that was counted.
	counted *cluster.Resource
	// unknown says of what it cannot be told whether there are instances.
	unknown []string
}

// take counts the instances of a type. A first look, at two instances at most,
// tells whether there are any; only then all are read, because our own may come
// before the foreign ones. Both come from a quorum of the storage, so an
// instance that was created before is seen.
//
// At is a resourceVersion, if the instances of an earlier moment are meant.
func (c *census) take(ctx context.Context, objects *cluster.Objects, resource cluster.Resource, at string) error {
	c.counted = &resource
	options := cluster.ListOptions{Limit: 2, At: at}
	for page := 0; ; page++ {
		list, err := objects.ListMetadata(ctx, resource, "", options)
		if err != nil {
			return fmt.Errorf("list the instances of %s: %w", resource.Kind, err)
		}
		if page == 0 && list.Continue != "" {
			options.Limit = censusPage // from the beginning
			continue
		}
		for _, item := range list.Items {
			c.count(resource, item)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
		options.At = "" // the token knows
		if page == maxPages {
			c.more = true
			return nil
		}
	}
}

func (c *census) count(resource cluster.Resource, item metav1.PartialObjectMetadata) {
	key := plan.Key{Group: resource.GVR.Group, Kind: resource.Kind, Namespace: item.Namespace, Name: item.Name}
	name := key.String()
	if c.owns != nil && c.owns(key, item.UID) {
		c.oursTotal++
		if item.DeletionTimestamp != nil {
			c.leaving++
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
	if obstacle := (plan.Obstacle{Type: resource.GVR}); !slices.Contains(c.types, obstacle) {
		c.types = append(c.types, obstacle)
	}
	if !maySee(c.owner, item.Namespace) {
		c.elsewhere++
		return
	}
	if item.DeletionTimestamp != nil {
		name += " (being deleted)"
	}
	if len(c.foreign) < maxNamed {
		c.foreign = append(c.foreign, name)
	}
}

// obstacles is why nothing may happen to the types before somebody else did
// something: foreign instances, and what cannot be counted. Empty means none.
func (c *census) obstacles() string {
	var parts []string
	if c.foreignTotal > 0 {
		parts = append(parts, amount(c.foreignTotal, "foreign instance", c.more)+c.where())
	}
	return strings.Join(append(parts, c.unknown...), "; ")
}

// where names the foreign instances that the owner may know of, and says how the others
// are listed.
func (c *census) where() string {
	visible := c.foreignTotal - c.elsewhere
	outside := fmt.Sprintf("outside of namespace %s (listed by kubectl get %s --all-namespaces)", c.owner.Ref.Namespace, listable(c.types))
	switch {
	case c.elsewhere == 0:
		return ": " + enumerate(c.foreign, visible)
	case visible == 0:
		return " " + outside
	default:
		return fmt.Sprintf(": %s, and %d %s", enumerate(c.foreign, visible), c.elsewhere, outside)
	}
}

// maySee reports whether the names of objects in a namespace, which the owner has not made,
// may be in its status. Readers of a status in a namespace are tenants of that namespace;
// what others keep elsewhere, such as their Secrets, is not for them.
func maySee(owner plan.Owner, namespace string) bool {
	return owner.Ref.Namespace == "" || owner.Ref.Namespace == namespace
}

// listable is how kubectl is asked for the objects of the types.
func listable(types []plan.Obstacle) string {
	var names []string
	for _, t := range types {
		if name := t.Type.GroupResource().String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names[:min(len(names), maxNamed)], ",")
}

// lost is what can be said of foreign instances that do not exist any more.
func (c *census) lost() string {
	if c.elsewhere == 0 {
		return c.obstacles()
	}
	return amount(c.foreignTotal, "foreign instance", c.more)
}

// String is why the types cannot be deleted at this moment: any instance of
// theirs would go with them. Empty means that there are none.
func (c *census) String() string {
	var parts []string
	if text := c.obstacles(); text != "" {
		parts = append(parts, text)
	}
	if c.oursTotal > 0 {
		state := "that must go first"
		if c.leaving == c.oursTotal {
			state = "still being deleted"
		}
		parts = append(parts, amount(c.oursTotal, "instance", false)+" of ours "+state+": "+enumerate(c.ours, c.oursTotal))
	}
	return strings.Join(parts, "; ")
}

func amount(n int, what string, more bool) string {
	if n != 1 {
		what += "s"
	}
	if more {
		return fmt.Sprintf("more than %d %s", n, what)
	}
	return fmt.Sprintf("%d %s", n, what)
}

// enumerate names the first objects and says how many more there are.
func enumerate(names []string, total int) string {
	shown := names[:min(len(names), maxNamed)]
	text := strings.Join(shown, ", ")
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
