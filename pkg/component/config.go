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
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// directives are what a component wants from its reconciliation: the
// ...Configuration interfaces, resolved over the settings of the reconciler, and
// valid.
type directives struct {
	namespace, name string // of the deployment
	intervals       verdict.Intervals
	policies        reconciler.Policies
	managedTypes    []reconciler.TypeInfo
}

// directivesOf resolves what the component wants, and returns every mistake.
func directivesOf(c Component, s settings) (directives, error) {
	d := directives{
		namespace: c.GetNamespace(),
		name:      c.GetName(),
		intervals: intervalsOf(c),
		policies:  policiesOf(c, s.policies),
	}
	if placement, ok := configurationOf[PlacementConfiguration](c); ok {
		d.namespace = cmp.Or(placement.GetDeploymentNamespace(), d.namespace)
		d.name = cmp.Or(placement.GetDeploymentName(), d.name)
	}
	var errs []error
	if problems := validation.IsDNS1123Label(d.namespace); d.namespace != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("deployment namespace %q: %s", d.namespace, strings.Join(problems, ", ")))
	}
	if problems := validation.IsDNS1123Subdomain(d.name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("deployment name %q: %s", d.name, strings.Join(problems, ", ")))
	}
	errs = append(errs, checkPolicies("", d.policies)...)
	errs = append(errs, annotateDrift(c, s.name, &d.policies))
	managedTypes, err := managedTypesOf(c)
	d.managedTypes = managedTypes
	return d, errors.Join(append(errs, err)...)
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

// annotateDrift takes over the drift policy that the annotation of the component asks for.
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

// minReapplyInterval is the floor of what an annotation may ask for, too.
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

const (
	defaultRequeueInterval = 10 * time.Minute
	// maxInterval keeps sums of times and intervals within what time.Duration holds.
	maxInterval = 10 * 365 * 24 * time.Hour
)

var defaultIntervals = verdict.Intervals{Requeue: defaultRequeueInterval, Retry: defaultRequeueInterval, Timeout: defaultRequeueInterval}

func intervalsOf(c Component) verdict.Intervals {
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
	requeue = interval(requeue, defaultRequeueInterval)
	return verdict.Intervals{Requeue: requeue, Retry: interval(retry, requeue), Timeout: interval(timeout, requeue)}
}

// interval bounds d; what is not positive means the default.
func interval(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return min(max(d, verdict.MinInterval), maxInterval)
}

// identity is on whose behalf dependent objects are read and written. The zero
// value is the operator itself.
type identity struct {
	// kubeConfig leads to another cluster; nil means the local one.
	kubeConfig []byte
	user       string
	groups     []string
}

// String names the identity in messages.
func (id identity) String() string {
	switch {
	case id.user != "":
		return id.user
	case id.kubeConfig != nil:
		return "the identity of the kubeconfig"
	default:
		return "the operator"
	}
}

const serviceAccountPrefix = "system:serviceaccount:"

func serviceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// identityOf returns the identity that the component asks for. By default that is
// the one of the kubeconfig or, in the local cluster, the reconciler's default
// service account in the namespace of the component.
func identityOf(c Component, s settings) (identity, error) {
	var id identity
	if own, ok := configurationOf[ClientConfiguration](c); ok {
		id.kubeConfig = own.GetKubeConfig()
	}
	if own, ok := configurationOf[ImpersonationConfiguration](c); ok {
		id.user, id.groups = own.GetImpersonationUser(), slices.Clone(own.GetImpersonationGroups())
	}
	if id.user == "" && len(id.groups) > 0 {
		return identity{}, errors.New("groups cannot be impersonated without a user")
	}
	// In another cluster the kubeconfig says who we are by default.
	if id.user == "" && s.serviceAccount != "" && id.kubeConfig == nil {
		id.user = serviceAccountUser("", s.serviceAccount)
	}
	return id.complete(c.GetNamespace())
}

// complete fills in the namespace of a service account. Its groups are derived
// from its name by the API server.
func (id identity) complete(namespace string) (identity, error) {
	account, ok := strings.CutPrefix(id.user, serviceAccountPrefix)
	if !ok {
		return id, nil
	}
	own, name, ok := strings.Cut(account, ":")
	if !ok || name == "" {
		return identity{}, fmt.Errorf("user %q is no service account: must have the form %s<namespace>:<name>", id.user, serviceAccountPrefix)
	}
	if own == "" {
		own = namespace
	}
	if own == "" {
		return identity{}, fmt.Errorf("service account %q: a component without a namespace must name the namespace of the service account", name)
	}
	if problems := validation.IsDNS1123Label(own); len(problems) > 0 {
		return identity{}, fmt.Errorf("service account %q: namespace %q: %s", name, own, strings.Join(problems, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return identity{}, fmt.Errorf("service account %q: %s", name, strings.Join(problems, ", "))
	}
	id.user = serviceAccountUser(own, name)
	return id, nil
}
