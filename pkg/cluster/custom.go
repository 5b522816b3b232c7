// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/pkg/status"
)

// customTTL is how long a definition of a custom type is remembered: it may
// change while its objects are looked at again and again.
const customTTL = 10 * time.Minute

// Custom is what the CustomResourceDefinition says about a type. The zero value
// is for types that have none, or none that we may read.
type Custom struct {
	// DeclaresConditions tells whether the schema declares status.conditions,
	// so that somebody will presumably write them.
	DeclaresConditions bool
	// ReplicasPath is the path of the number of replicas, such as
	// [spec replicas], if the type can be scaled.
	ReplicasPath []string
}

type rememberedCustom struct {
	custom Custom
	until  time.Time
}

var definitions = Resource{GVR: gvr("apiextensions.k8s.io", "v1", "customresourcedefinitions"), Kind: "CustomResourceDefinition"}

// DeclaresConditions tells whether the type is a custom one whose schema
// declares status.conditions. If we may not read the definition, the answer is no.
func (t *Types) DeclaresConditions(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	custom, err := t.Custom(ctx, gvk)
	return custom.DeclaresConditions, err
}

// Custom returns what the CustomResourceDefinition says about the type. The
// answer may be some minutes old.
func (t *Types) Custom(ctx context.Context, gvk schema.GroupVersionKind) (Custom, error) {
	if IsBuiltIn(gvk.Group) {
		return Custom{}, nil
	}
	t.lock.RLock()
	known, ok := t.customs[gvk]
	t.lock.RUnlock()
	if ok && time.Now().Before(known.until) {
		return known.custom, nil
	}
	return shared(ctx, t, "custom "+gvk.String(), func(ctx context.Context) (Custom, error) {
		custom, err := t.fetchCustom(ctx, gvk)
		if err != nil {
			return Custom{}, err
		}
		t.lock.Lock()
		defer t.lock.Unlock()
		t.customs[gvk] = rememberedCustom{custom: custom, until: time.Now().Add(customTTL)}
		return custom, nil
	})
}

func (t *Types) fetchCustom(ctx context.Context, gvk schema.GroupVersionKind) (Custom, error) {
	resource, err := t.Resolve(ctx, gvk)
	if err != nil {
		return Custom{}, err
	}
	name := resource.GVR.GroupResource().String()
	definition, err := t.objects.Get(ctx, definitions, "", name)
	switch {
	case IsNotFound(err, definitions, name) || apierrors.IsForbidden(err):
		return Custom{}, nil
	case err != nil:
		return Custom{}, fmt.Errorf("read the definition of %s: %w", gvk.GroupKind(), err)
	}
	return readCustom(definition.Object, gvk.Version), nil
}

func readCustom(definition map[string]any, version string) Custom {
	custom := Custom{DeclaresConditions: status.DeclaresConditions(definition, version)}
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	for _, v := range versions {
		v, ok := v.(map[string]any)
		if !ok || v["name"] != version {
			continue
		}
		path, _, _ := unstructured.NestedString(v, "subresources", "scale", "specReplicasPath")
		custom.ReplicasPath = splitPath(path)
	}
	return custom
}

// IsBuiltIn tells whether the group is one of the server's own, so that no
// custom type and no aggregated server can be in it.
func IsBuiltIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}
