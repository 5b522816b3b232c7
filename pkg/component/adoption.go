// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// A component may take over a Helm release when it is installed. Until all objects are ready for the first time, the
// objects of the release are adopted, and its record is read, because it has the random values. Afterwards
// only the status knows of it.

// adopt completes the configuration of a component that takes over a release, and notes the release in the status. If
// the release cannot be taken over, nothing is written.
func (h *handler[T]) adopt(ctx context.Context, obj T, t targets.Connection, generator manifests.Generator, resolved *resolvedConfig) error {
	status := obj.GetStatus()
	reference, err := h.releaseToAdopt(obj)
	if err != nil {
		return &verdict.InvalidError{Err: h.about(obj, err)}
	}
	if reference == nil {
		return nil
	}
	if reference.Namespace != resolved.namespace || reference.Name != resolved.name {
		return &verdict.InvalidError{Err: h.about(obj, fmt.Errorf("%s cannot be adopted: the component is deployed as %s/%s, and both must have the same name and namespace",
			reference.Title(), resolved.namespace, resolved.name))}
	}
	release, err := helmrelease.Read(ctx, redact.From(ctx).Client(t.Client), *reference)
	if err == nil {
		if source := generatorSource(generator); source != nil && source.Chart != "" && release.Chart != source.Chart {
			err = &helmrelease.UnusableError{Reference: *reference, Err: fmt.Errorf("it is of the chart %s, and the operator renders %s", release.Chart, source.Chart)}
		}
	}
	_, missing := errors.AsType[*helmrelease.NotFoundError](err)
	_, unusable := errors.AsType[*helmrelease.UnusableError](err)
	switch {
	case missing && status.AdoptedRelease != nil && !isEmpty(obj):
		// It was retired too early. What is needed of it was kept before the first object was recorded.
	case missing || unusable:
		return &verdict.InvalidError{Err: h.about(obj, err)}
	case err != nil:
		return h.about(obj, err)
	default:
		resolved.adopted = &rendering.Adopted{Objects: append(release.Objects, release.HookObjects...), Time: release.DeployedAt}
	}
	resolved.policies.AdoptHelmRelease = &reconciler.HelmRelease{Namespace: reference.Namespace, Name: reference.Name}
	status.AdoptedRelease = &v1alpha1.AdoptedRelease{Namespace: reference.Namespace, Name: reference.Name, Revision: reference.Revision}
	return nil
}

// releaseToAdopt returns the release that is being taken over; nil if there is none, or if that is done.
func (h *handler[T]) releaseToAdopt(obj T) (*helmrelease.Reference, error) {
	status := obj.GetStatus()
	annotation := h.settings.name + "/" + v1alpha1.AnnotationAdoptHelmRelease
	value := obj.GetAnnotations()[annotation]
	if adopted := status.AdoptedRelease; adopted != nil {
		reference := &helmrelease.Reference{Namespace: adopted.Namespace, Name: adopted.Name, Revision: adopted.Revision}
		switch {
		case status.AppliedGeneration != 0:
			return nil, nil
		case value != "" && value != reference.String() && !isEmpty(obj):
			return nil, fmt.Errorf("annotation %s: the component is taking over %s, and cannot take over another release", annotation, reference)
		case value == "" || value == reference.String():
			return reference, nil
		}
	}
	if value == "" {
		return nil, nil
	}
	reference, err := helmrelease.ParseReference(value)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", annotation, err)
	}
	if status.AppliedGeneration != 0 {
		return nil, fmt.Errorf("annotation %s: the component is installed, and only a new one can take over a release", annotation)
	}
	return &reference, nil
}
