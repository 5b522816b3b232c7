// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// marker writes annotations of ours. An annotation of the chart itself takes precedence.
type marker struct {
	// prefix is the name of the reconciler; empty means that there is none.
	prefix string
	// rollbackHooks: the hooks of rollbacks are included.
	rollbackHooks bool
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

// arrange returns the objects in the order of helm template: the folders crds, then the manifests,
// then the hooks. Our annotations express the special treatment that Helm gives to some of them.
func (g *generator) arrange(ctx context.Context, c *chart.Chart, r rendered, release common.ReleaseOptions) ([]client.Object, error) {
	prefix := manifests.FromContext(ctx).ReconcilerName
	if prefix == "" && len(r.hooks) > 0 {
		return nil, errors.New("the chart has hooks: the context holds no reconciler name")
	}
	m := marker{prefix: prefix, rollbackHooks: renders.RollbackHooks(ctx)}
	objects := []client.Object{}
	for _, object := range r.crds {
		if g.options.CRDs == CRDsOnce {
			m.set(object, v1alpha1.AnnotationReconcilePolicy, "once")
		}
		objects = append(objects, object)
	}
	if err := m.sequence(ctx, c, r.manifests); err != nil {
		return nil, err
	}
	for _, object := range r.manifests {
		objects = append(objects, object.Unstructured)
	}
	hooks, err := m.hooks(r.hooks, release)
	if err != nil {
		return nil, err
	}
	for _, object := range hooks {
		renders.NoteOrigin(ctx, object.Unstructured, object.file)
		objects = append(objects, object.Unstructured)
	}
	for _, object := range objects {
		if m.prefix != "" {
			dropNeeds(object.(*unstructured.Unstructured))
		}
	}
	return objects, nil
}

// sequence expresses the order of the chart, which is reversed for deletions, in our annotations.
func (m marker) sequence(ctx context.Context, c *chart.Chart, objects []templated) error {
	if m.prefix == "" {
		return nil
	}
	placed, warnings, err := sequence(c, objects)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		logf.FromContext(ctx).Info(warning)
	}
	for _, object := range objects {
		level := placed[object.Unstructured]
		if level > maxWeight {
			return fmt.Errorf("chart %s: more than %d resource groups and sub-charts come one after the other", c.Name(), maxWeight)
		}
		if level > 0 {
			m.set(object.Unstructured, v1alpha1.AnnotationApplyOrder, strconv.Itoa(level))
			m.set(object.Unstructured, v1alpha1.AnnotationDeleteOrder, strconv.Itoa(-level))
		}
	}
	return nil
}

// dropNeeds removes the annotation with two slashes in its name, which no API server
// accepts.
func dropNeeds(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	if _, there := annotations[annotationNeedsGroup]; !there {
		return
	}
	delete(annotations, annotationNeedsGroup)
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
}
