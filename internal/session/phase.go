// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/result"
)

// Phase is what a reconcile does about an object.
type Phase string

const (
	// PhaseIgnore is for objects that do not, or do no longer, belong to this operator.
	PhaseIgnore Phase = "Ignore"
	// PhasePaused is for objects with an unknown management policy: nothing is
	// done, because the session has an error before Run, and the conditions repeat it.
	PhasePaused Phase = "Paused"
	// PhaseClaim is the first reconcile: Claim and our finalizer become durable, then
	// it goes on like PhaseApply.
	PhaseClaim Phase = "Claim"
	// PhaseSkip is for objects that are suspended, or under the policy Skip: UpdateStatus.
	PhaseSkip Phase = "Skip"
	// PhaseApply is the ordinary phase: Claim, CreateOrUpdate.
	PhaseApply Phase = "Apply"
	// PhaseDelete is for objects under deletion: Delete. After its Success the session
	// goes on in PhaseFinalize.
	PhaseDelete Phase = "Delete"
	// PhaseFinalize removes our finalizer: what was made is deleted, or orphaned.
	PhaseFinalize Phase = "Finalize"
)

// facts are all that the phase depends on.
type facts struct {
	elsewhere bool                      // the object belongs to another operator
	deleting  bool                      // deletion was asked for
	claimed   bool                      // our finalizer is there
	suspended bool                      // the handler says that nothing may be created or updated
	orphan    bool                      // the handler says that deletion orphans what was made
	policy    v1alpha1.ManagementPolicy // empty if it is not known what may be done
}

// phaseOf returns the phase that follows from the settings of the object and from the
// management policy.
//
// A finalizer is never added to an object under deletion: the server would refuse
// it, and nothing was made for an object that was never claimed. An object that is to
// orphan what was made does so whatever the policy, so there is a way out of every deletion.
func phaseOf(f facts) Phase {
	orphan := f.orphan || f.policy == v1alpha1.ManagementPolicySkip || f.policy == v1alpha1.ManagementPolicyDetachOnDelete
	switch {
	case f.elsewhere:
		return PhaseIgnore
	case f.deleting && !f.claimed:
		return PhaseIgnore
	case f.deleting && orphan:
		return PhaseFinalize
	case f.policy == "":
		return PhasePaused
	case f.deleting:
		return PhaseDelete
	case f.suspended || f.policy == v1alpha1.ManagementPolicySkip:
		return PhaseSkip
	case !f.claimed:
		return PhaseClaim
	default:
		return PhaseApply
	}
}

// parseManagementPolicy reads the value of an annotation, in kebab-case or CamelCase.
// The error lists the values that there are.
func parseManagementPolicy(value string) (v1alpha1.ManagementPolicy, error) {
	for _, known := range vocabulary.ManagementPolicies {
		if strings.EqualFold(strings.ReplaceAll(value, "-", ""), string(known)) {
			return known, nil
		}
	}
	return "", fmt.Errorf("%q must be one of manage, skip, detach-on-delete", value)
}

// policyOf returns the policy that applies to the object: the annotation of the
// object counts before that of its namespace, and that before the option. A value that
// does not exist is not passed over for the next one: it may have been meant to prevent
// a deletion. So is a namespace that cannot be read.
func (s *Sessions[T]) policyOf(ctx context.Context, obj T) (v1alpha1.ManagementPolicy, error) {
	if s.Options.Name == "" {
		return s.Options.ManagementPolicy, nil
	}
	annotation := policyAnnotation(s.Options.Name)
	if value, ok := obj.GetAnnotations()[annotation]; ok {
		return s.parsePolicy(s.titleOf(obj), annotation, value)
	}
	if s.Options.Namespaces == nil || obj.GetNamespace() == "" {
		return s.Options.ManagementPolicy, nil
	}
	namespace := namespaceMetadata()
	if err := s.Options.Namespaces.Get(ctx, client.ObjectKey{Name: obj.GetNamespace()}, namespace); err != nil {
		return "", fmt.Errorf("%s: find out the management policy of its namespace; the annotation %s on the object itself makes that unnecessary: %w",
			s.titleOf(obj), annotation, err)
	}
	if value, ok := namespace.GetAnnotations()[annotation]; ok {
		return s.parsePolicy("Namespace "+obj.GetNamespace(), annotation, value)
	}
	return s.Options.ManagementPolicy, nil
}

func (s *Sessions[T]) parsePolicy(where, annotation, value string) (v1alpha1.ManagementPolicy, error) {
	policy, err := parseManagementPolicy(value)
	if err != nil {
		return "", result.NewStalling(fmt.Errorf("%s: annotation %s: %w", where, annotation, err), vocabulary.ReasonSpecInvalid)
	}
	return policy, nil
}

func policyAnnotation(name string) string { return name + "/" + v1alpha1.AnnotationManagementPolicy }

// namespaceMetadata is a namespace of which nothing but metadata is read.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

func (s *Sessions[T]) titleOf(obj T) string {
	return report.Key{Kind: s.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}.String()
}
