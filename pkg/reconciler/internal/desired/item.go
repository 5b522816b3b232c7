// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// item is one object on its way through the door.
type item struct {
	place position
	// content is our own copy.
	content map[string]any
	// broken items miss what the next steps need; their mistakes are noted.
	broken bool
	// aside are items that only the others' mistakes may be about.
	aside bool

	key      plan.Key
	version  string
	policies policy.Set
	// ruled tells that the policies are valid.
	ruled   bool
	digest  string
	defines []v1alpha1.TypeInfo

	// mistakes do not name the item: its namespace may be found out later.
	mistakes []error
}

// position is where an object was found.
type position struct {
	// index counts the objects that the generator returned, from 0.
	index int
	// within leads through lists, such as ", item 2".
	within string
}

// String returns a form that people count by, such as "object 3, item 2".
func (p position) String() string { return "object " + strconv.Itoa(p.index+1) + p.within }

// element returns the position of an element of the list at p, counted from 0.
func (p position) element(index int) position {
	return position{index: p.index, within: p.within + ", item " + strconv.Itoa(index+1)}
}

// mistake notes what is wrong with the item.
func (i *item) mistake(format string, args ...any) {
	i.mistakes = append(i.mistakes, fmt.Errorf(format, args...))
}

// fail notes a mistake that leaves nothing to go on with.
func (i *item) fail(format string, args ...any) {
	i.mistake(format, args...)
	i.broken = true
}

// title names the item for messages: by type and name if it has both, by its
// position else.
func (i *item) title() string {
	switch {
	case i.key.Kind != "" && i.key.Name != "":
		return i.key.String()
	case i.key.Kind != "":
		return i.place.String() + " (" + i.key.Kind + i.file() + ")"
	case i.file() != "":
		return i.place.String() + " (" + i.file()[2:] + ")"
	default:
		return i.place.String()
	}
}

// pathAnnotations are where tools leave the name of the file that an object comes from.
var pathAnnotations = []string{"config.kubernetes.io/path", "internal.config.kubernetes.io/path"}

// file returns the file that the object comes from, if the object says so.
func (i *item) file() string {
	metadata, _ := i.content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, name := range pathAnnotations {
		if path, ok := annotations[name].(string); ok && path != "" {
			return ", " + path
		}
	}
	return ""
}

func (i *item) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.key.Group, Version: i.version, Kind: i.key.Kind}
}
