// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// schema guards the OpenAPI schema of the library, which is global. Builds that
// use the one that is built in share it; one that sets another needs it alone.
var schema = semaphore.NewWeighted(math.MaxInt64)

// schemaPoll is how often a build that needs the schema alone looks whether it is free.
const schemaPoll = 20 * time.Millisecond

// acquireSchema waits for the schema. A build that needs it alone does not queue: it would
// keep all others from starting until the slowest of those under way has ended.
func acquireSchema(ctx context.Context, alone bool) (share int64, err error) {
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

// build builds a kustomization to YAML. The context ends the wait for other builds,
// but not the build.
func build(ctx context.Context, p *plan, limits Limits) (data []byte, err error) {
	share, err := acquireSchema(ctx, p.setsSchema)
	if err != nil {
		return nil, fmt.Errorf("wait for other builds to end: %w", err)
	}
	defer schema.Release(share)
	if p.setsSchema {
		// The library never goes back to the schema that is built in.
		defer openapi.ResetOpenAPI()
	}
	defer func() {
		if value := recover(); value != nil {
			err = &manifests.PanicError{Value: value, Stack: debug.Stack()}
		}
		if err != nil {
			data, err = nil, fmt.Errorf("kustomization in folder %s: %w", p.folder, err)
		}
	}()
	resources, err := krusty.MakeKustomizer(krustyOptions()).Run(p.files, path.Join("/", p.folder))
	if err != nil {
		return nil, err
	}
	if data, err = resources.AsYaml(); err != nil {
		return nil, err
	}
	if int64(len(data)) > limits.OutputBytes {
		return nil, &LimitError{Message: fmt.Sprintf("it gives more than %d bytes", limits.OutputBytes)}
	}
	return data, nil
}

// krustyOptions are those of the command, but that all of the tree may be used.
func krustyOptions() *krusty.Options {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	return options
}

var errNoFiles = errors.New("it holds no kustomization and no manifests")
