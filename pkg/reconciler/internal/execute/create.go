// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// create creates an object that must not exist. Under the server-side apply
// policies the create is an apply, too: after a POST every field would have a
// second owner, and a field that the manifest drops later would stay.
func (e *Executor) create(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	switch step.Desired.Policies.Update {
	case v1alpha1.UpdatePolicySsaMerge, v1alpha1.UpdatePolicySsaOverride:
		object, metadata := body(step.Desired.Manifest)
		// No existing object has this version, so the server refuses to
		// apply to one, while it ignores the version of a new object.
		metadata["resourceVersion"] = "1"
		return e.objects.Apply(ctx, resource, object, e.options.FieldOwner)
	default:
		return e.objects.Create(ctx, resource, step.Desired.Manifest, e.options.FieldOwner)
	}
}
