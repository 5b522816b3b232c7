// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// AdoptRelease completes the deployment and the policies of a component that takes over a Helm release, and notes the release in the
// status. Until all objects are ready for the first time, the objects of the release are adopted, and its record is read, because it has
// the random values. If the release cannot be taken over, nothing is written.
func (s *Source) AdoptRelease(ctx context.Context, obj identity.Component, t targets.Connection, d *Deployment, policies *reconciler.Policies) error {
	status := obj.GetStatus()
	reference, err := s.releaseToAdopt(obj)
	if err != nil {
		return &verdict.InvalidError{Err: s.Self.About(obj, err)}
	}
	if reference == nil && s.Self.AdoptHelmOperator {
		if reference, err = s.releaseOfHelmOperator(ctx, obj, t.Client, *d); err != nil {
			return s.Self.About(obj, err)
		}
	}
	if reference == nil {
		return nil
	}
	if reference.Namespace != d.Namespace || reference.Name != d.Name {
		return &verdict.InvalidError{Err: s.Self.About(obj, fmt.Errorf("%s cannot be adopted: the component is deployed as %s/%s, and both must have the same name and namespace",
			reference.Title(), d.Namespace, d.Name))}
	}
	if !vocabulary.Adoptions[policies.Adoption].Unowned {
		return &verdict.InvalidError{Err: s.Self.About(obj, fmt.Errorf("%s cannot be adopted: the adoption policy is %s", reference.Title(), policies.Adoption))}
	}
	release, err := helmrelease.Read(ctx, confidential.NotingClient(t.Client), *reference)
	if chart := renders.Source(s.Renderer.Generator).Chart; err == nil && chart != "" && release.Chart != chart {
		err = &helmrelease.UnusableError{Reference: *reference, Err: fmt.Errorf("it is of the chart %s, and the operator renders %s", release.Chart, chart)}
	}
	_, missing := errors.AsType[*helmrelease.NotFoundError](err)
	_, unusable := errors.AsType[*helmrelease.UnusableError](err)
	switch {
	case missing && status.AdoptedRelease != nil && !status.Inventory.IsEmpty():
		// It was retired too early. What is needed of it was kept before the first object was recorded.
	case missing || unusable:
		return &verdict.InvalidError{Err: s.Self.About(obj, err)}
	case err != nil:
		return s.Self.About(obj, err)
	}
	policies.AdoptHelmRelease = &reconciler.HelmRelease{Namespace: reference.Namespace, Name: reference.Name}
	if release != nil {
		policies.AdoptHelmRelease.Flux = release.Flux()
		d.Adopted = &rendering.Adopted{Objects: release.Objects, Hooks: release.HookObjects, Time: release.DeployedAt}
	}
	status.AdoptedRelease = new(v1alpha1.AdoptedRelease(*reference))
	return nil
}

// releaseToAdopt returns the release that is being taken over; nil if there is none. The annotation decides: others may write the status.
func (s *Source) releaseToAdopt(obj identity.Component) (*helmrelease.Reference, error) {
	status := obj.GetStatus()
	annotation := s.Self.Annotation(vocabulary.AnnotationAdoptHelmRelease)
	value, adopted := obj.GetAnnotations()[annotation], status.AdoptedRelease
	fail := func(format string, arguments ...any) (*helmrelease.Reference, error) {
		return nil, fmt.Errorf("annotation %s: %w", annotation, fmt.Errorf(format, arguments...))
	}
	const onlyNew = "only a new component can take over a release: delete this one, and create it with the annotation"
	switch {
	case status.AppliedGeneration != 0 && (adopted != nil || value == ""):
		return nil, nil
	case status.AppliedGeneration != 0:
		return fail("the component is installed, and only a new one can take over a release")
	case value == "" && s.Self.AdoptHelmOperator:
		return nil, nil
	case value == "" && adopted != nil && !status.Inventory.IsEmpty():
		return fail("it is missing, and Helm release %s/%s is being taken over: set it to %s/%s/%d until the component is ready", adopted.Namespace, adopted.Name,
			adopted.Namespace, adopted.Name, adopted.Revision)
	case value == "":
		status.AdoptedRelease = nil
		return nil, nil
	case !s.AdoptReleases:
		return fail("this operator takes over no Helm releases: its author allows it by the option AdoptHelmReleases")
	}
	reference, err := helmrelease.ParseReference(value)
	switch {
	case err != nil:
		return fail("%w", err)
	case reference.Namespace != obj.GetNamespace():
		return fail("%s is not in the namespace of the component", reference.Title())
	case adopted == nil && status.Revision != 0:
		return fail(onlyNew) // values that were drawn for its revision would replace those of the release
	case adopted != nil && *adopted != v1alpha1.AdoptedRelease(reference):
		return fail(onlyNew)
	}
	return &reference, nil
}

// releaseOfHelmOperator returns the release that a Helm operator has made for a component that is not applied yet; nil if there is none.
// It drops the conditions of the Helm operator from the status. A component that began without a release takes over none.
func (s *Source) releaseOfHelmOperator(ctx context.Context, obj identity.Component, c client.Client, d Deployment) (*helmrelease.Reference, error) {
	status := obj.GetStatus()
	if status.AppliedGeneration != 0 {
		return nil, nil
	}
	conditions.Delete(identity.Conditions(obj), "Initialized", "Deployed", "ReleaseFailed", "Irreconcilable")
	if status.AdoptedRelease == nil && status.Revision != 0 {
		return nil, nil
	}
	reference, err := helmrelease.Latest(ctx, c, d.Namespace, d.Name, "Secret")
	if _, missing := errors.AsType[*helmrelease.NotFoundError](err); missing {
		return (*helmrelease.Reference)(status.AdoptedRelease), nil
	}
	return &reference, err
}

// EraseRelease deletes the records of the release that a component has taken over from a Helm operator, which would have deleted them.
// Other clients may write the status, so the records stay unless the last revision is the one in the status, and of the chart of the
// operator. The record of the last revision is deleted last, and only if all others are gone: without it no one finds them again.
func (s *Source) EraseRelease(ctx context.Context, obj identity.Component, c client.Client) error {
	adopted := obj.GetStatus().AdoptedRelease
	if adopted == nil || !s.Self.AdoptHelmOperator || obj.GetStatus().AppliedGeneration == 0 || adopted.Namespace != obj.GetNamespace() || adopted.Name != obj.GetName() {
		return nil
	}
	release, err := helmrelease.Read(ctx, c, helmrelease.Reference(*adopted))
	_, missing := errors.AsType[*helmrelease.NotFoundError](err)
	_, unusable := errors.AsType[*helmrelease.UnusableError](err)
	switch {
	case missing || unusable || err == nil && release.Chart != renders.Source(s.Renderer.Generator).Chart:
		return nil
	case err != nil:
		return err
	}
	records, err := helmrelease.Records(ctx, c, adopted.Namespace, adopted.Name, "Secret")
	for _, record := range records {
		if err := c.Delete(ctx, &record, client.Preconditions{UID: new(record.GetUID())}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret %s/%s of Helm release %s: %w", record.Namespace, record.Name, adopted.Name, err)
		}
	}
	return err
}
