// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
)

// schema guards the OpenAPI schema of the library, which is global. Builds that use the built-in
// schema share it; a build that sets another one needs it alone.
var schema = semaphore.NewWeighted(math.MaxInt64)

// loadSchema loads the schema that is built in. The library loads it late, and reads it in other builds without a lock meanwhile.
func loadSchema() { openapi.SchemaForResourceType(kyaml.TypeMeta{}) }

var loadFirst = sync.OnceFunc(loadSchema)

// schemaPoll is how often a build that needs the schema alone looks whether it is free.
const schemaPoll = 20 * time.Millisecond

// acquireSchema waits for the schema. A build that needs it alone does not queue: it would keep all
// other builds from starting until the slowest build under way has ended.
func acquireSchema(ctx context.Context, alone bool) (share int64, err error) {
	loadFirst()
	if !alone {
		return 1, schema.Acquire(ctx, 1)
	}
	ticker := time.NewTicker(schemaPoll)
	defer ticker.Stop()
	for !schema.TryAcquire(math.MaxInt64) {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ticker.C:
		}
	}
	return math.MaxInt64, nil
}

// build builds a kustomization, and returns the size of the result, too. The context ends
// the wait for other builds, but not the build.
func build(ctx context.Context, p *checkedBuild, limits Limits) (built []*unstructured.Unstructured, size int64, err error) {
	share, err := acquireSchema(ctx, p.setsSchema)
	if err != nil {
		return nil, 0, fmt.Errorf("wait for other builds to end: %w", err)
	}
	defer schema.Release(share)
	if p.setsSchema {
		openapi.ResetOpenAPI()
		// The library never goes back to the schema that is built in.
		defer func() {
			openapi.ResetOpenAPI()
			loadSchema()
		}()
	}
	defer func() {
		if err != nil {
			built, err = nil, fmt.Errorf("kustomization in folder %s: %w", p.folder, err)
		}
	}()
	defer guard.Into(&err) // the library panics, such as for an empty file of crds
	resources, err := krusty.MakeKustomizer(krustyOptions()).Run(p.files, path.Join("/", p.folder))
	if err != nil {
		return nil, 0, err
	}
	return objectsOf(resources, limits)
}

// objectsOf converts the result of a build to objects without the detour through a text, in which
// the library spends most of its time. Scalars get the values that the library would write.
func objectsOf(resources resmap.ResMap, limits Limits) (built []*unstructured.Unstructured, size int64, err error) {
	values := make([]any, 0, resources.Size())
	for _, resource := range resources.Resources() {
		extent, err := document.ExtentOfNode(resource.YNode())
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		if size += int64(extent.Bytes); size > limits.OutputBytes {
			return nil, 0, &excess.Error{Message: fmt.Sprintf("it gives more than %d bytes", limits.OutputBytes)}
		}
		value, err := valueOf(resource)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		values = append(values, value)
	}
	built, err = document.ObjectsOf("result", values...)
	return built, size, err
}

// valueOf returns the content of a resource. The encoder of the library adds line ends to some
// folded texts: a resource with such a text takes the detour, so that it equals the output of
// kustomize build.
func valueOf(resource *resource.Resource) (any, error) {
	if !hasFolded(resource.YNode()) {
		return document.Options{Core: true}.FromNode(resource.YNode())
	}
	text, err := resource.AsYAML()
	if err != nil {
		return nil, err
	}
	objects, err := document.Decode("result", text)
	if err != nil {
		return nil, err
	}
	return objects[0].Object, nil
}

func hasFolded(n *yaml.Node) bool {
	return n.Style&yaml.FoldedStyle != 0 || slices.ContainsFunc(n.Content, hasFolded)
}

// krustyOptions are the options of the command, but that all of the tree may be used.
func krustyOptions() *krusty.Options {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	return options
}

var errNoFiles = errors.New("it holds no kustomization and no manifests")
