// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/fleet"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// ReconcilerOptions are creation options for a Reconciler. An invalid value is an error of SetupWithManager. A policy
// in an annotation or in the spec (PolicyConfiguration, DriftConfiguration) takes precedence.
type ReconcilerOptions struct {
	// FieldOwner is the field manager of all writes.
	//
	// Default: the name of the reconciler
	FieldOwner *string
	// Finalizer is set on every component. A former finalizer on existing components blocks their deletion.
	//
	// Default: the name of the reconciler
	Finalizer *string
	// DefaultServiceAccount is the name of a service account in the namespace of the component. The operator
	// impersonates it for components that name neither a user nor a kubeconfig.
	//
	// Default: none: the operator acts with its own identity
	DefaultServiceAccount *string
	// AdoptionPolicy decides about a dependent object that exists already and has no owner or another one.
	//
	// Default: AdoptionPolicyIfUnowned
	AdoptionPolicy *reconciler.AdoptionPolicy
	// UpdatePolicy is how dependent objects are written.
	//
	// Default: UpdatePolicyReplace
	UpdatePolicy *reconciler.UpdatePolicy
	// DeletePolicy is whether dependent objects are deleted or orphaned when they are no longer desired.
	//
	// Default: DeletePolicyDelete
	DeletePolicy *reconciler.DeletePolicy
	// DriftPolicy is what happens when another client changes or deletes a dependent object.
	//
	// Default: DriftPolicyRepair
	DriftPolicy *v1alpha1.DriftPolicy
	// MissingNamespacesPolicy is whether a namespace is created if dependent objects need it and no manifest defines
	// it.
	//
	// Default: MissingNamespacesPolicyCreate; with the option Namespaced MissingNamespacesPolicyDoNotCreate
	MissingNamespacesPolicy *reconciler.MissingNamespacesPolicy
	// ManagementPolicy limits the changes to the dependents of a component.
	//
	// Default: v1alpha1.ManagementPolicyManage
	ManagementPolicy *v1alpha1.ManagementPolicy
	// SchemeBuilder adds types to the scheme of the clients for target clusters.
	//
	// Default: nil, which adds nothing
	SchemeBuilder types.SchemeBuilder
	// Objects are rules about dependent objects by their type.
	//
	// Default: those of ObjectOptions
	Objects ObjectOptions
	// Revisions are about revisions.
	//
	// Default: those of RevisionOptions
	Revisions RevisionOptions
	// Users are about the rights of users.
	//
	// Default: those of UserOptions
	Users UserOptions
	// Controller are about the controller.
	//
	// Default: those of ControllerOptions
	Controller ControllerOptions
	// Operator are about the place and the identity of the operator.
	//
	// Default: those of OperatorOptions
	Operator OperatorOptions
}

// ObjectOptions are rules about dependent objects by their type.
type ObjectOptions struct {
	// ReadyWhen are rules for when the objects of some types are ready. The first matching rule counts; the
	// annotation ready-when takes precedence.
	//
	// Default: none
	ReadyWhen []reconciler.ReadyWhen
	// Outputs are values of dependent objects that a component publishes, in addition to the annotations output
	// and secret-output.
	//
	// Default: none
	Outputs []Output
	// IgnoreFields are rules for fields that the operator writes only when it creates an object. A later change of
	// these fields is no drift. All matching rules and the annotation ignore-fields count.
	//
	// Default: none
	IgnoreFields []reconciler.IgnoreFields
	// SharedTypes are the names of further CustomResourceDefinitions that belong to the operator and not to a
	// component. They must be the same for all components.
	//
	// Default: those in the folder crds of the chart
	SharedTypes []string
}

// RevisionOptions are about revisions: when one is ready, how it starts, and the way back.
type RevisionOptions struct {
	// RevisionHistoryLimit is how many revisions of a component are kept for rollbacks: in the status, and
	// encrypted in a Secret. The last ready revision is kept in addition. 0 keeps no manifests.
	//
	// Default: 10
	// Unit: revisions
	RevisionHistoryLimit *int
	// RollbackOnFailure applies the last ready revision if a later one fails or is not ready within the timeout.
	// RollbackConfiguration takes precedence.
	//
	// Default: false
	RollbackOnFailure bool
	// RequireApproval lets each new revision wait until the annotation approve of the component has the hash of
	// its plan. The annotation require-approval takes precedence.
	//
	// Default: false
	RequireApproval bool
	// HooksOnRestore runs the hooks of an installation also for a component that was restored from a backup and
	// finds its former objects.
	//
	// Default: false
	HooksOnRestore bool
	// MinReadySeconds is how long each container without a readiness and a startup probe must run until a new
	// revision is ready. The field minReadySeconds of a workload takes precedence. 0 ignores pods.
	//
	// Default: 10
	// Unit: seconds
	MinReadySeconds *int
	// Rollout limits how many components another chart or generator updates at the same time. It needs a
	// RevisionHistoryLimit of at least 1 and a generator with a digest, see BuildDigest.
	//
	// Default: all components at once
	Rollout *Rollout
	// BuildDigest is the digest of Go code without manifests.WithDigest, such as the version of the operator. A
	// new digest starts a new revision of each component with other manifests or with a pre-reconcile hook without
	// PreviewSafe.
	//
	// Default: empty: a change of such code starts no revision
	BuildDigest string
}

// DenyInternal is the default of UserOptions.TargetDialPolicy: it refuses addresses of the machine, of its links and of the
// metadata services of clouds, and allows private networks. A policy of your own replaces it, and can ask it first.
func DenyInternal(ctx context.Context, network string, address netip.AddrPort) error {
	return cluster.DenyInternal(ctx, network, address)
}

// UserOptions are about what users may do who write components or namespaces.
type UserOptions struct {
	// TargetDialPolicy decides which addresses of API servers kubeconfigs may have, before every connection and
	// after names were resolved. The network is "tcp4" or "tcp6". An error refuses the address.
	//
	// Default: DenyInternal, which refuses addresses of the machine, of its links and of metadata services
	TargetDialPolicy func(ctx context.Context, network string, address netip.AddrPort) error
	// AllowSecretPatches lets the patches of a component change Secrets. Users who write components can then find
	// out the values of rendered Secrets.
	//
	// Default: false: a patch that names a Secret is an error, and other patches leave Secrets unchanged
	AllowSecretPatches bool
	// AdoptHelmReleases lets users take over the Helm release of the name of the deployment, by the annotation
	// adopt-helm-release of a new component.
	//
	// Default: false: the annotation is an error
	AdoptHelmReleases bool
	// DisablePreviews ignores the annotation preview. Otherwise the operator needs the rights to get, list,
	// create, patch and delete Secrets beside the components.
	//
	// Default: false
	DisablePreviews bool
	// NamespaceManagementPolicies makes the annotation management-policy of a namespace count for its components without
	// an own one. The operator then needs the right to get, list and watch namespaces. If it cannot read a namespace, it
	// does nothing for the components there.
	//
	// Default: false
	NamespaceManagementPolicies bool
	// RequireNamespaces are further namespaces of which components may require objects; "*" is all namespaces and
	// objects without one. Users then find out the state and the outputs of these objects.
	//
	// Default: the namespace of the component
	RequireNamespaces []string
}

// ControllerOptions are about the controller: its client, its queue, its leader election and its traces.
type ControllerOptions struct {
	// NewClient makes the client for components and references. It must read from the server.
	//
	// Default: client.New of controller-runtime
	NewClient client.NewClientFunc
	// MaxConcurrentReconciles is how many components are reconciled at the same time. It has no effect on
	// SetupWithManagerAndBuilder.
	//
	// Default: what the manager says, else 5
	// Unit: components
	MaxConcurrentReconciles *int
	// TargetConcurrency is how many components are reconciled in the cluster of one kubeconfig at the same time.
	//
	// Default: 1
	// Unit: components
	TargetConcurrency *int
	// RateLimiter delays a component after an error. It has no effect on SetupWithManagerAndBuilder.
	//
	// Default: 200 milliseconds, doubling up to two minutes; about 3 seconds at most after progress
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// LabelSelector selects the components of this reconciler. Several operators can share a type. Select the same in
	// the cache options of the manager.
	//
	// Default: all components
	LabelSelector *metav1.LabelSelector
	// LeaderLock is the lock of the leader election of the manager. With it, the reconciler starts nothing once
	// another process may lead.
	//
	// Default: none: the age of the lease is not checked
	LeaderLock *LeaderLock
	// TracerProvider makes OpenTelemetry spans of each reconcile, its parts and its writes.
	//
	// Default: none
	TracerProvider trace.TracerProvider
}

// OperatorOptions are about the place and the identity of the operator.
type OperatorOptions struct {
	// OperatorNamespace is where the operator keeps its own objects, such as the Secret with the key of its
	// digests.
	//
	// Default: the environment variable POD_NAMESPACE, else the namespace of the pod, else "default"
	OperatorNamespace *string
	// Namespaced says that the operator and its components are in OperatorNamespace, where alone it has rights;
	// set Cache.DefaultNamespaces of the manager to it. The uid of the namespace identifies the cluster unless
	// ClusterUID is set. Do not change the option while there are components. A missing namespace is not created.
	//
	// Default: false
	Namespaced bool
	// ClusterUID identifies the cluster of the components. It must never change, and must differ between clusters.
	//
	// Default: the uid of the namespace kube-system, which the operator needs the right to get; with Namespaced,
	// of OperatorNamespace
	ClusterUID *string
	// AdoptOperator is the former name of a renamed operator. The operator takes over its components: it removes
	// the former finalizer, and writes each dependent once. The annotation adopt-operator takes precedence.
	//
	// Default: none
	AdoptOperator string
	// AdoptHelmOperator says that the operator replaces a Helm operator of operator-sdk or helm-operator-plugins
	// for the same kind. A new component takes over the Helm release of its deployment. The operator removes the
	// finalizer of the Helm operator, and deletes the records of the release with the component. It needs the
	// rights to list and delete Secrets in the namespaces of components.
	//
	// Default: false
	AdoptHelmOperator bool
}

// settings are the options, resolved and valid.
type settings struct {
	identity.Operator        // without the kind of the components
	serviceAccount    string // empty: no impersonation by default
	policies          reconciler.Policies
	management        v1alpha1.ManagementPolicy
	objects           ObjectOptions
	users             UserOptions
	schemeBuilder     types.SchemeBuilder  // may be nil
	leaderLock        *LeaderLock          // may be nil
	tracerProvider    trace.TracerProvider // may be nil
	minReady          time.Duration

	historyLimit      int
	rollbackOnFailure bool
	requireApproval   bool
	hooksOnRestore    bool
	rollout           *fleet.Limits // may be nil
	targetConcurrency int

	// operatorNamespace is where the operator's own objects are.
	operatorNamespace string
	// onlyNamespace is the only one that the operator has rights in; empty: there may be others.
	onlyNamespace string
	newClient     client.NewClientFunc // nil: client.New
	concurrency   int                  // 0: what the manager says
	rateLimiter   workqueue.TypedRateLimiter[reconcile.Request]
	ownLimiter    *backoff.RateLimiter // is rateLimiter, unless the author has set another one
	selector      labels.Selector      // nil: everything
	clusterUID    apitypes.UID         // empty: to be read
}

// defaultHistoryLimit is how many revisions are kept, as of Deployments.
//
// Limit: the default of the option RevisionHistoryLimit.
const defaultHistoryLimit = 10

// maxFieldOwner is the limit of the API server for the name of a field manager.
//
// Unit: characters
// Limit: the length of the option FieldOwner, and of the reconciler name in its place.
const maxFieldOwner = 128

// resolveOptions returns the settings, or every mistake.
func resolveOptions(name string, options ReconcilerOptions) (settings, error) {
	s := settings{
		Operator: identity.Operator{
			Name: name, FieldOwner: cmp.Or(ptr.Deref(options.FieldOwner, ""), name), Finalizer: cmp.Or(ptr.Deref(options.Finalizer, ""), name),
			AdoptOperator: options.Operator.AdoptOperator, AdoptHelmOperator: options.Operator.AdoptHelmOperator,
		},
		serviceAccount: ptr.Deref(options.DefaultServiceAccount, ""),
		policies: reconciler.Policies{
			Adoption:          ptr.Deref(options.AdoptionPolicy, v1alpha1.AdoptionPolicyIfUnowned),
			Update:            ptr.Deref(options.UpdatePolicy, v1alpha1.UpdatePolicyReplace),
			Delete:            ptr.Deref(options.DeletePolicy, v1alpha1.DeletePolicyDelete),
			Drift:             ptr.Deref(options.DriftPolicy, v1alpha1.DriftPolicyRepair),
			MissingNamespaces: ptr.Deref(options.MissingNamespacesPolicy, v1alpha1.MissingNamespacesPolicyCreate),
		},
		management:     ptr.Deref(options.ManagementPolicy, v1alpha1.ManagementPolicyManage),
		objects:        options.Objects,
		users:          options.Users,
		schemeBuilder:  options.SchemeBuilder,
		leaderLock:     options.Controller.LeaderLock,
		tracerProvider: options.Controller.TracerProvider,
		minReady:       time.Duration(ptr.Deref(options.Revisions.MinReadySeconds, 10)) * time.Second,

		historyLimit:      ptr.Deref(options.Revisions.RevisionHistoryLimit, defaultHistoryLimit),
		rollbackOnFailure: options.Revisions.RollbackOnFailure,
		requireApproval:   options.Revisions.RequireApproval,
		hooksOnRestore:    options.Revisions.HooksOnRestore,
		targetConcurrency: ptr.Deref(options.Controller.TargetConcurrency, 1),
	}
	var errs []error
	for _, rule := range options.Objects.ReadyWhen {
		errs = append(errs, rule.Validate())
	}
	for _, rule := range options.Objects.IgnoreFields {
		errs = append(errs, rule.Validate())
	}
	errs = append(errs, checkOutputs(options.Objects.Outputs)...)
	errs = append(errs, checkSharedTypes(options.Objects.SharedTypes)...)
	for _, namespace := range options.Users.RequireNamespaces {
		if problems := validation.IsDNS1123Label(namespace); namespace != "*" && len(problems) > 0 {
			errs = append(errs, fmt.Errorf("option RequireNamespaces %q: %s", namespace, strings.Join(problems, ", ")))
		}
	}
	var err error
	if s.operatorNamespace, err = operatorNamespace(options.Operator.OperatorNamespace, podNamespaceFile); err != nil {
		errs = append(errs, err)
	}
	if options.Operator.Namespaced {
		s.onlyNamespace = s.operatorNamespace
		s.policies.MissingNamespaces = ptr.Deref(options.MissingNamespacesPolicy, v1alpha1.MissingNamespacesPolicyDoNotCreate)
	}
	errs = append(errs, s.resolveSetup(options))
	if s.leaderLock != nil && s.leaderLock.Interface == nil {
		errs = append(errs, errors.New("option LeaderLock is not usable: make it by NewLeaderLock"))
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("reconciler name %q: %s", name, strings.Join(problems, ", ")))
	}
	if s.FieldOwner == "" || len(s.FieldOwner) > maxFieldOwner {
		errs = append(errs, fmt.Errorf("option FieldOwner %q (by default the reconciler name): must have 1 to %d characters", s.FieldOwner, maxFieldOwner))
	}
	errs = append(errs, checkFinalizer(s.Finalizer))
	if s.AdoptOperator != "" && !s.IsOther(s.AdoptOperator) {
		errs = append(errs, fmt.Errorf("option AdoptOperator %q: must be the name of another reconciler", s.AdoptOperator))
	}
	if problems := validation.IsDNS1123Subdomain(s.serviceAccount); s.serviceAccount != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("option DefaultServiceAccount %q: %s", s.serviceAccount, strings.Join(problems, ", ")))
	}
	if s.targetConcurrency < 1 {
		errs = append(errs, fmt.Errorf("option TargetConcurrency %d: must be at least 1", s.targetConcurrency))
	}
	if s.minReady < 0 {
		errs = append(errs, fmt.Errorf("option MinReadySeconds %d: must not be negative", *options.Revisions.MinReadySeconds))
	}
	if s.historyLimit < 0 {
		errs = append(errs, fmt.Errorf("option RevisionHistoryLimit %d: must not be negative", s.historyLimit))
	}
	if s.historyLimit == 0 && s.rollbackOnFailure {
		errs = append(errs, errors.New("option RollbackOnFailure needs a RevisionHistoryLimit of at least 1"))
	}
	errs = append(errs, s.resolveRollout(options.Revisions.Rollout))
	errs = append(errs, checkPolicies("option ", s.policies)...)
	errs = append(errs, checkValue("option ManagementPolicy", s.management, vocabulary.ManagementPolicies))
	return s, errors.Join(errs...)
}

// checkSharedTypes reports each name that no CustomResourceDefinition can have, and each that is there twice.
func checkSharedTypes(names []string) (errs []error) {
	for i, name := range names {
		plural, group, _ := strings.Cut(name, ".")
		switch problems := append(validation.IsDNS1035Label(plural), validation.IsDNS1123Subdomain(group)...); {
		case len(problems) > 0 || !strings.Contains(group, "."):
			errs = append(errs, fmt.Errorf("option SharedTypes %q: must be the name of a CustomResourceDefinition, its plural and its group, such as shops.example.com", name))
		case slices.Contains(names[:i], name):
			errs = append(errs, fmt.Errorf("option SharedTypes %q: is there twice", name))
		}
	}
	return errs
}

func checkFinalizer(finalizer string) error {
	if slices.Contains(identity.ServerFinalizers, finalizer) {
		return fmt.Errorf("option Finalizer %q: belongs to the API server", finalizer)
	}
	if problems := validation.IsQualifiedName(finalizer); len(problems) > 0 {
		return fmt.Errorf("option Finalizer %q (by default the reconciler name): %s", finalizer, strings.Join(problems, ", "))
	}
	return nil
}

// checkPolicies reports every value that does not exist. Empty ones are checked, too.
func checkPolicies(where string, p reconciler.Policies) []error {
	return []error{
		checkValue(where+"AdoptionPolicy", p.Adoption, vocabulary.AdoptionPolicies),
		checkValue(where+"UpdatePolicy", p.Update, vocabulary.UpdatePolicies),
		checkValue(where+"DeletePolicy", p.Delete, vocabulary.DeletePolicies),
		checkValue(where+"DriftPolicy", p.Drift, vocabulary.DriftPolicies),
		checkValue(where+"MissingNamespacesPolicy", p.MissingNamespaces, vocabulary.MissingNamespacesPolicies),
	}
}

func checkValue[P ~string](what string, value P, allowed []P) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s %q: must be one of %v", what, string(value), allowed)
}

const (
	// podNamespaceVariable is usually filled by the downward API.
	podNamespaceVariable = "POD_NAMESPACE"
	// podNamespaceFile is mounted into every pod that has a service account.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// fallbackNamespace is for an operator that runs outside of a cluster.
	fallbackNamespace = "default"
)

// OperatorNamespace returns the default of the option OperatorNamespace. The error says where a bad
// name comes from.
func OperatorNamespace() (string, error) { return operatorNamespace(nil, podNamespaceFile) }

// operatorNamespace returns the namespace of the operator's own objects. The error
// says where a bad name comes from.
func operatorNamespace(option *string, file string) (name string, err error) {
	from := "option OperatorNamespace"
	if option != nil {
		name = *option
	} else if name = os.Getenv(podNamespaceVariable); name != "" {
		from = "variable " + podNamespaceVariable
	} else {
		// A file that cannot be read is that of a process outside of a cluster.
		content, _ := os.ReadFile(file)
		from = "file " + file
		name = cmp.Or(strings.TrimSpace(string(content)), fallbackNamespace)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return name, fmt.Errorf("%s %q: %s", from, name, strings.Join(problems, ", "))
	}
	return name, nil
}
