// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// FieldManager is the manager of what is written, as the history of a component shows it.
const FieldManager = "corbel"

// Annotations are those to set, by their suffix; nil removes one.
type Annotations map[string]*string

// Decision returns what is set on a component, and what is then reported. The error says why nothing is. It is asked
// again if the component has changed.
type Decision func(inspect.Component) (Annotations, string, error)

// Annotate decides and writes, and returns the component as it is then. The request demands the component as it was
// read; one that has changed meanwhile, as its status often does, is read and decided about again.
func Annotate(ctx context.Context, to client.Client, reader *inspect.Reader, c inspect.Component, decide Decision) (inspect.Component, string, error) {
	if c.Reconciler == "" {
		return c, "", fmt.Errorf("the name of the reconciler of %s is unknown, and so are its annotations: no operator has reconciled it yet; \"corbel check\" looks for the operator", c)
	}
	var report string
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set, text, err := decide(c)
		if err != nil {
			return err
		}
		report = text
		patch, err := patchOf(c, set)
		if err != nil {
			return err
		}
		written := &unstructured.Unstructured{}
		written.SetGroupVersionKind(c.Type.GroupVersionKind)
		written.SetNamespace(c.Object.GetNamespace())
		written.SetName(c.Object.GetName())
		err = to.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
		if err == nil {
			c.Object = written
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("annotate %s: %w", c, err)
		}
		uid := c.Object.GetUID()
		again, readErr := reader.Get(ctx, c.Type, client.ObjectKeyFromObject(c.Object))
		switch {
		case readErr != nil:
			return readErr
		case again.Object.GetUID() != uid:
			return fmt.Errorf("%s was deleted and created again meanwhile; nothing was written", c)
		}
		c = again
		return err
	})
	return c, report, err
}

// patchOf returns a merge patch that is refused if the component is another one, or has changed.
func patchOf(c inspect.Component, set Annotations) ([]byte, error) {
	values := map[string]*string{}
	for suffix, value := range set {
		values[c.Reconciler+"/"+suffix] = value
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": c.Object.GetUID(), "resourceVersion": c.Object.GetResourceVersion(), "annotations": values,
	}})
}
