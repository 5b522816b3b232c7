// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
)

const (
	annotationResourcePolicy = "helm.sh/resource-policy"
	keep                     = "keep"
)

// marker writes annotations of ours. What the chart says itself wins.
type marker struct {
	// prefix is the name of the reconciler; empty means that there is none.
	prefix string
}

func (m marker) set(object *unstructured.Unstructured, annotation, value string) {
	if m.prefix == "" {
		return
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	name := m.prefix + "/" + annotation
	if _, there := annotations[name]; !there {
		annotations[name] = value
		object.SetAnnotations(annotations)
	}
}

// arrange returns the objects in the order of helm template: what is in crds,
// then the manifests, then the hooks. What Helm does with some of them in another
// way is said in our annotations.
func (g *Generator) arrange(ctx context.Context, r rendered, release common.ReleaseOptions) ([]client.Object, error) {
	prefix, err := manifests.ReconcilerNameFromContext(ctx)
	if err != nil && len(r.hooks) > 0 {
		return nil, fmt.Errorf("the chart has hooks: %w", err)
	}
	m := marker{prefix: prefix}
	objects := []client.Object{}
	for _, object := range r.crds {
		if g.options.CRDs == CRDsOnce {
			m.set(object, v1alpha1.AnnotationReconcilePolicy, "once")
		}
		objects = append(objects, object)
	}
	for _, object := range r.manifests {
		objects = append(objects, object)
	}
	hooks, err := m.hooks(r.hooks, release)
	if err != nil {
		return nil, err
	}
	for _, object := range hooks {
		objects = append(objects, object)
	}
	for _, object := range objects {
		if object.GetAnnotations()[annotationResourcePolicy] == keep {
			m.set(object.(*unstructured.Unstructured), v1alpha1.AnnotationDeletePolicy, "orphan")
		}
	}
	return objects, nil
}
