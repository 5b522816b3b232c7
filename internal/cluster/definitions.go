// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/pkg/status"
)

// customTTL is how long a definition of a custom type is remembered: it may
// change while its objects are looked at again and again.
const customTTL = 10 * time.Minute

// Custom is the part of a CustomResourceDefinition about one type. The zero value is for types that
// have none, or none that we may read.
type Custom struct {
	// DeclaresConditions reports whether the schema declares status.conditions,
	// so that a controller will presumably write them.
	DeclaresConditions bool
	// ReplicasPath is the path of the number of replicas, such as
	// [spec replicas], if the type can be scaled.
	ReplicasPath []string
	// Maps are the paths of maps with keys of any name, such as spec.labels, without the positions in
	// lists. Typed clients drop such a map when it is empty.
	Maps map[string]bool
}

type rememberedCustom struct {
	custom Custom
	until  time.Time
}

var definitions = Resource{GVR: gvr("apiextensions.k8s.io", "v1", "customresourcedefinitions"), Kind: "CustomResourceDefinition"}

// DeclaresConditions reports whether the type is a custom one with
// status.conditions in its schema. If we may not read the definition, the answer is no.
func (t *Types) DeclaresConditions(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	custom, err := t.Custom(ctx, gvk)
	return custom.DeclaresConditions, err
}

// Custom returns the facts of the CustomResourceDefinition about the type. The answer may be some
// minutes old.
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
	custom := Custom{DeclaresConditions: status.DeclaresConditions(definition, version), Maps: map[string]bool{}}
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	for _, v := range versions {
		v, ok := v.(map[string]any)
		if !ok || v["name"] != version {
			continue
		}
		path, _, _ := unstructured.NestedString(v, "subresources", "scale", "specReplicasPath")
		custom.ReplicasPath = splitPath(path)
		schema, _, _ := unstructured.NestedFieldNoCopy(v, "schema", "openAPIV3Schema")
		addMaps(custom.Maps, "", schema)
	}
	return custom
}

// addMaps adds the paths of the maps in a part of a schema.
func addMaps(maps map[string]bool, path string, part any) {
	schema, _ := part.(map[string]any)
	if schema["additionalProperties"] != nil {
		maps[path] = true
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		addMaps(maps, strings.TrimPrefix(path+"."+name, "."), property)
	}
	if schema["items"] != nil {
		addMaps(maps, path, schema["items"])
	}
}

// BuiltIn returns a scheme with the types of the server only. Programs add types of their own to scheme.Scheme.
var BuiltIn = sync.OnceValue(func() *runtime.Scheme {
	types := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(types))
	return types
})

// IsBuiltIn reports whether the group is one of the server's own, so that no
// custom type and no aggregated server can be in it.
func IsBuiltIn(group string) bool {
	return BuiltIn().IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}

// automanaged is the label of the APIServices that the server makes for its own types.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// pageSize is the size of the pages in which we read lists of unknown length.
const pageSize = 500

var apiServices = Resource{GVR: gvr("apiregistration.k8s.io", "v1", "apiservices"), Kind: "APIService"}

// Gone reports whether a type is provably gone, and its objects with it: the
// server does not serve it, no CustomResourceDefinition brings it (one may exist
// without being served), and no aggregated server is responsible for its group
// (one may be out of order, or about to bring it). An error means that it is not known.
func (t *Types) Gone(ctx context.Context, gk schema.GroupKind) (bool, error) {
	if _, err := t.ResolveAny(ctx, gk, ""); err == nil || !isNotServed(err) {
		return false, err
	}
	// The definition is looked at after the discovery: a type that is just
	// being defined shows in one of the two.
	if defined, err := t.isDefined(ctx, gk); err != nil || defined {
		return false, err
	}
	aggregated, err := t.isAggregated(ctx, gk.Group)
	return err == nil && !aggregated, err
}

// isDefined reports whether any CustomResourceDefinition brings the type. Its name
// holds the group; the kind is inside.
func (t *Types) isDefined(ctx context.Context, gk schema.GroupKind) (bool, error) {
	defined := false
	err := t.eachNamed(ctx, definitions, "."+gk.Group, func(metadata metav1.PartialObjectMetadata) error {
		definition, err := t.objects.Get(ctx, definitions, "", metadata.Name)
		if IsNotFound(err, definitions, metadata.Name) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the CustomResourceDefinition %s: %w", metadata.Name, err)
		}
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		defined = defined || kind == gk.Kind
		return nil
	})
	return defined, err
}

// isAggregated reports whether an aggregated server is responsible for the group.
func (t *Types) isAggregated(ctx context.Context, group string) (bool, error) {
	aggregated := false
	err := t.eachNamed(ctx, apiServices, "."+group, func(metadata metav1.PartialObjectMetadata) error {
		version, _, _ := strings.Cut(metadata.Name, ".")
		if metadata.Name == version+"."+group && metadata.Labels[automanaged] == "" {
			aggregated = true
		}
		return nil
	})
	return aggregated, err
}

// eachNamed visits the objects of a cluster-scoped type that have a name with the suffix.
func (t *Types) eachNamed(ctx context.Context, r Resource, suffix string, visit func(metav1.PartialObjectMetadata) error) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := t.objects.ListMetadata(ctx, r, "", options)
		if err != nil {
			return fmt.Errorf("list the objects of kind %s: %w", r.Kind, err)
		}
		for _, item := range list.Items {
			if !strings.HasSuffix(item.Name, suffix) {
				continue
			}
			if err := visit(item); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
