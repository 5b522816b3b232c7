// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"context"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
	"github.com/corbel-run/corbel/pkg/types"
)

// dataFor returns what templates see as the dot. It is made anew for every
// rendering, as templates can change it.
func dataFor(ctx context.Context, namespace, name string, parameters types.Unstructurable) (map[string]any, error) {
	values, err := convert.Values(parameters)
	if err != nil {
		return nil, err
	}
	revision := int64(1)
	if r, err := manifests.ComponentRevisionFromContext(ctx); err == nil {
		revision = r
	}
	service := "corbel"
	if reconciler, err := manifests.ReconcilerNameFromContext(ctx); err == nil {
		service = reconciler
	}
	return map[string]any{
		"Values":    values,
		"Name":      name,
		"Namespace": namespace,
		"Release": map[string]any{
			"Name":      name,
			"Namespace": namespace,
			"Revision":  revision,
			"IsInstall": manifests.IsComponentInstallation(ctx),
			"IsUpgrade": !manifests.IsComponentInstallation(ctx),
			"Service":   service,
		},
		"Component": componentFrom(ctx, revision),
	}, nil
}

// componentFrom describes the component; what the context does not hold is
// empty.
func componentFrom(ctx context.Context, revision int64) map[string]any {
	name, _ := manifests.ComponentNameFromContext(ctx)
	namespace, _ := manifests.ComponentNamespaceFromContext(ctx)
	digest, _ := manifests.ComponentDigestFromContext(ctx)
	labels, annotations := map[string]any{}, map[string]any{}
	if component, err := manifests.ComponentFromContext(ctx); err == nil {
		copyInto(labels, component.GetLabels())
		copyInto(annotations, component.GetAnnotations())
	}
	return map[string]any{
		"Name": name, "Namespace": namespace, "Digest": digest, "Revision": revision,
		"Labels": labels, "Annotations": annotations,
	}
}

func copyInto(target map[string]any, source map[string]string) {
	for key, value := range source {
		target[key] = value
	}
}
