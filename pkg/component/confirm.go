// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// confirm returns what the engine asks before it creates objects and it is some time
// ago that anybody knew: whether the component is still as this pass read it, and
// whether it is for this process to act. The server cannot refuse a stale creation,
// as it refuses a stale update.
func (h *handler[T]) confirm(obj T) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := h.settings.leaderLock.leadingFor(creating); err != nil {
			return err
		}
		current := newComponent[T]()
		switch err := h.local.Get(ctx, client.ObjectKeyFromObject(obj), current); {
		case cluster.IsGone(err, obj.GetName()):
			return superseded("it is not there any more")
		case err != nil:
			return fmt.Errorf("read %s again: %w", objectName(h.kind.Kind, obj), err)
		}
		switch {
		case current.GetUID() != obj.GetUID():
			return superseded("it was deleted and created again")
		case current.GetGeneration() != obj.GetGeneration():
			return superseded("its spec changed")
		case current.GetDeletionTimestamp().IsZero() != obj.GetDeletionTimestamp().IsZero():
			return superseded("it is being deleted")
		case !equality.Semantic.DeepEqual(current.GetStatus().Inventory, obj.GetStatus().Inventory):
			return superseded("another process writes its inventory")
		case !maps.Equal(h.instructions(current), h.instructions(obj)):
			return superseded("its annotations ask for something else")
		}
		return nil
	}
}

// instructions are the annotations that say what is to be done with the component. They
// belong to no generation. Others may be a hook's, in memory.
func (h *handler[T]) instructions(obj T) map[string]string {
	own := maps.Clone(obj.GetAnnotations())
	maps.DeleteFunc(own, func(key, _ string) bool { return !strings.HasPrefix(key, h.settings.name+"/") })
	return own
}
