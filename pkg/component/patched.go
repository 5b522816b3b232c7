// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/types"
)

// patched returns the generator with the patches that the component asks for.
// They are part of the spec, and thereby of the digest of the component. One that
// cannot be applied is a mistake in the spec.
func patched(g manifests.Generator, c Component) manifests.Generator {
	own, ok := configurationOf[PatchesConfiguration](c)
	if !ok {
		return g
	}
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		patches, images := own.GetPatches(), own.GetImages()
		if len(patches) == 0 && len(images) == 0 {
			return manifests.Generate(ctx, g, namespace, name, parameters)
		}
		transformer, err := transform.Patches(patches, images)
		if err != nil {
			return nil, wrongPatches(err)
		}
		objects, err := manifests.Generate(ctx, g, namespace, name, parameters)
		if err != nil {
			return nil, err
		}
		changed, err := manifests.TransformObjects(ctx, transformer, namespace, name, objects)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err // it took too long, which a slow machine may be the cause of
		case err != nil:
			return nil, wrongPatches(err)
		}
		return changed, nil
	})
}

func wrongPatches(err error) error {
	return &invalidError{fmt.Errorf("patches of the component: %w", err)}
}
