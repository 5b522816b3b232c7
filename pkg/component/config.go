// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// resolvedConfig is what a component configures: the ...Configuration interfaces, resolved over
// the settings of the reconciler, and valid.
type resolvedConfig struct {
	revision.Deployment
	policies     reconciler.Policies
	managedTypes []reconciler.TypeInfo
}

// resolveConfig resolves the configuration of a component, and returns every mistake.
func resolveConfig(c Component, s settings) (resolvedConfig, error) {
	resolved := resolvedConfig{
		Deployment: revision.Deployment{Namespace: c.GetNamespace(), Name: c.GetName()},
		policies:   policiesOf(c, s.policies),
	}
	if placement, ok := configurationOf[PlacementConfiguration](c); ok {
		resolved.Namespace = cmp.Or(placement.GetDeploymentNamespace(), resolved.Namespace)
		resolved.Name = cmp.Or(placement.GetDeploymentName(), resolved.Name)
	}
	var errs []error
	if problems := validation.IsDNS1123Label(resolved.Namespace); resolved.Namespace != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("deployment namespace %q: %s", resolved.Namespace, strings.Join(problems, ", ")))
	}
	if problems := validation.IsDNS1123Subdomain(resolved.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("deployment name %q: %s", resolved.Name, strings.Join(problems, ", ")))
	}
	if value, there := c.GetAnnotations()[s.Name+"/"+vocabulary.AnnotationAdoptOperator]; there && !s.IsOther(value) {
		errs = append(errs, fmt.Errorf("annotation %s/%s: %q must be the name of another operator", s.Name, vocabulary.AnnotationAdoptOperator, value))
	}
	resolved.policies.AdoptOperator = s.FormerName(c)
	errs = append(errs, checkPolicies("", resolved.policies)...)
	errs = append(errs, annotateDrift(c, s.Name, &resolved.policies))
	managedTypes, err := managedTypesOf(c)
	resolved.managedTypes = managedTypes
	return resolved, errors.Join(append(errs, err)...)
}

func policiesOf(c Component, p reconciler.Policies) reconciler.Policies {
	if own, ok := configurationOf[PolicyConfiguration](c); ok {
		p.Adoption = cmp.Or(own.GetAdoptionPolicy(), p.Adoption)
		p.Update = cmp.Or(own.GetUpdatePolicy(), p.Update)
		p.Delete = cmp.Or(own.GetDeletePolicy(), p.Delete)
		p.MissingNamespaces = cmp.Or(own.GetMissingNamespacesPolicy(), p.MissingNamespaces)
	}
	if own, ok := configurationOf[DriftConfiguration](c); ok {
		p.Drift = cmp.Or(own.GetDriftPolicy(), p.Drift)
	}
	if own, ok := configurationOf[ReapplyConfiguration](c); ok {
		if interval := own.GetReapplyInterval(); interval > 0 {
			p.ReapplyInterval = max(interval, minReapplyInterval)
		}
	}
	return p
}

// annotateDrift applies the drift policy that the annotation of the component asks for.
func annotateDrift(c Component, reconcilerName string, p *reconciler.Policies) error {
	annotation := reconcilerName + "/" + v1alpha1.AnnotationDriftPolicy
	value, there := c.GetAnnotations()[annotation]
	if !there {
		return nil
	}
	drift, err := reconciler.ParseDriftPolicy(value)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", annotation, err)
	}
	p.Drift = drift
	return nil
}

// patchesOf returns the patches of a component and the images that it replaces.
func patchesOf(c identity.Component) ([]v1alpha1.Patch, []v1alpha1.Image) {
	own, ok := configurationOf[PatchesConfiguration](c)
	if !ok {
		return nil, nil
	}
	return own.GetPatches(), own.GetImages()
}

// minReapplyInterval is the floor of what an annotation may ask for, too.
//
// Limit: the shortest reapply interval; a shorter one in an annotation is a mistake.
const minReapplyInterval = time.Minute

// managedTypesOf returns the additional managed types, or every pattern that is not one.
func managedTypesOf(c Component) ([]reconciler.TypeInfo, error) {
	own, ok := configurationOf[TypeConfiguration](c)
	if !ok {
		return nil, nil
	}
	managed := own.GetAdditionalManagedTypes()
	var errs []error
	for i, info := range managed {
		if suffix := strings.TrimPrefix(info.Group, "*."); info.Group != "*" && len(validation.IsDNS1123Subdomain(suffix)) > 0 {
			errs = append(errs, fmt.Errorf("additional managed type %d: group %q: must be the name of a group, \"*\", or \"*.\" and a suffix", i+1, info.Group))
		}
		if info.Kind != "*" && len(validation.IsDNS1035Label(strings.ToLower(info.Kind))) > 0 {
			errs = append(errs, fmt.Errorf("additional managed type %d: kind %q: must be the name of a kind, or \"*\"", i+1, info.Kind))
		}
	}
	return managed, errors.Join(errs...)
}

// maxInterval keeps sums of times and intervals within what time.Duration holds.
//
// Limit: the longest requeue interval, retry interval and timeout of a component.
const maxInterval = 10 * 365 * 24 * time.Hour

func intervalsOf(c identity.Component) verdict.Intervals {
	var requeue, retry, timeout time.Duration
	if own, ok := configurationOf[RequeueConfiguration](c); ok {
		requeue = own.GetRequeueInterval()
	}
	if own, ok := configurationOf[RetryConfiguration](c); ok {
		retry = own.GetRetryInterval()
	}
	if own, ok := configurationOf[TimeoutConfiguration](c); ok {
		timeout = own.GetTimeout()
	}
	requeue = interval(requeue, verdict.DefaultInterval)
	return verdict.Intervals{Requeue: requeue, Retry: interval(retry, requeue), Timeout: interval(timeout, requeue)}
}

// interval bounds d; what is not positive means the default.
func interval(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return min(max(d, verdict.MinInterval), maxInterval)
}

// rollsBack reports whether the component is rolled back when a revision fails.
func (s *settings) rollsBack(obj identity.Component) bool {
	if own, ok := configurationOf[RollbackConfiguration](obj); ok {
		if value := own.GetRollbackOnFailure(); value != nil {
			return *value
		}
	}
	return s.rollbackOnFailure
}

// accessOf returns the access to the target cluster that the component asks for. By default
// its user is that of the kubeconfig or, in the local cluster, the reconciler's default
// service account in the namespace of the component.
func accessOf(c Component, s settings) (target.Access, error) {
	access := target.Access{Kubeconfig: kubeConfigOf(c)}
	if own, ok := configurationOf[ImpersonationConfiguration](c); ok {
		access.User, access.Groups = own.GetImpersonationUser(), slices.Clone(own.GetImpersonationGroups())
	}
	if access.User == "" && len(access.Groups) > 0 {
		return target.Access{}, errors.New("groups cannot be impersonated without a user")
	}
	if access.User == "" && s.serviceAccount != "" && access.Kubeconfig == nil {
		access.User = targets.ServiceAccountUser("", s.serviceAccount)
	}
	return targets.CompleteUser(access, c.GetNamespace())
}

// kubeConfigOf returns the kubeconfig of a component; nil if its target is the local cluster.
func kubeConfigOf(c Component) []byte {
	own, ok := configurationOf[ClientConfiguration](c)
	if !ok {
		return nil
	}
	return own.GetKubeConfig()
}

// flagOf reads an annotation that is true or false; by default it is false.
func flagOf(c Component, annotation string) (bool, error) {
	switch value := c.GetAnnotations()[annotation]; value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf(`annotation %s: %q must be "true" or "false"`, annotation, value)
	}
}

// isEmpty reports whether the component has no dependents that could be lost.
func isEmpty(c Component) bool { return c.GetStatus().Inventory.IsEmpty() }

// suspension is what a component says about its suspension: in its spec, or in annotations
// that a user can set without a change of the spec.
type suspension struct {
	// until is when it ends by itself; zero if there is none, and noEnd if it does not.
	until  time.Time
	reason string
}

// noEnd is later than all times that a user can write.
var noEnd = time.Unix(1<<40, 0)

// suspensionOf returns the suspension of a component: of those that its spec and its
// annotations ask for, the one that remains longer. That its management policy may suspend it,
// too, is found out by the session. The error is about the annotation alone.
func (o *opener) suspensionOf(obj Component) (suspension, error) {
	annotated, err := o.annotatedSuspension(obj)
	if own := specSuspension(obj); own.remains(o.now()) > annotated.remains(o.now()) {
		return own, err
	}
	return annotated, err
}

// annotatedSuspension returns the suspension that the annotations ask for.
func (o *opener) annotatedSuspension(obj Component) (suspension, error) {
	name, annotations := o.self.Annotation(vocabulary.AnnotationSuspend), obj.GetAnnotations()
	s := suspension{until: noEnd, reason: annotations[o.self.Annotation(vocabulary.AnnotationSuspendReason)]}
	switch value := annotations[name]; value {
	case "", "false":
		return suspension{}, nil
	case "true":
		return s, nil
	default:
		until, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return suspension{}, fmt.Errorf(`annotation %s: %q must be "true", "false" or a time such as "2026-12-01T08:00:00Z"`, name, sentence.Shorten(value, 64))
		}
		s.until = until
		return s, nil
	}
}

// specSuspension returns the suspension that the spec asks for.
func specSuspension(c Component) suspension {
	own, ok := configurationOf[SuspensionConfiguration](c)
	if !ok || !own.IsSuspended() {
		return suspension{}
	}
	s := suspension{until: noEnd}
	if terms, ok := configurationOf[SuspensionTermsConfiguration](c); ok {
		s.reason = terms.GetSuspendReason()
		if until := terms.GetSuspendUntil(); !until.IsZero() {
			s.until = until
		}
	}
	return s
}

// isSuspended reports whether the component is to be left as it is. A mistake in the
// annotation does not suspend it: then a full reconcile reports the mistake, and does nothing
// else.
func (o *opener) isSuspended(obj Component) bool {
	s, _ := o.suspensionOf(obj)
	return s.remains(o.now()) > 0
}

// remains returns how long the suspension goes on; 0 if there is none.
func (s suspension) remains(now time.Time) time.Duration { return max(s.until.Sub(now), 0) }

func (s suspension) ends() bool { return !s.until.IsZero() && !s.until.Equal(noEnd) }

// endsIn returns the delay after which a component is reconciled because its suspension ends; 0 if it does not end.
func (s suspension) endsIn(now time.Time) time.Duration {
	if !s.ends() {
		return 0
	}
	return min(max(s.remains(now), verdict.MinInterval), maxInterval)
}

// String is the message of a component that is suspended.
func (s suspension) String() string {
	text := "suspended"
	if s.ends() {
		text += " until " + s.until.UTC().Format(time.RFC3339)
	}
	if reason := strings.TrimSpace(s.reason); reason != "" {
		text += ": " + sentence.Shorten(reason, verdict.MaxSentence)
	}
	return text
}
