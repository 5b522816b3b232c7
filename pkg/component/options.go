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

// ReconcilerOptions are creation options for a Reconciler: its names, its policies, and structs for all else by subject.
type ReconcilerOptions struct {
	// FieldOwner is the field manager of all writes.
	//
	// Default: the reconciler name, also if it is empty
	FieldOwner *string
	// Finalizer is set on every component. The API server warns of one without a path, such as the
	// default. On components that exist the former finalizer counts as that of another client, and
	// blocks the deletion.
	//
	// Default: the reconciler name, also if it is empty
	Finalizer *string
	// DefaultServiceAccount is the name of a service account to impersonate for components that name
	// neither a user (see ImpersonationConfiguration) nor a kubeconfig. It is the account of that
	// name in the namespace of the component.
	//
	// Default: none, also if it is empty: the operator acts with its own identity
	DefaultServiceAccount *string
	// AdoptionPolicy is what happens if a dependent object exists already and has no owner or another
	// one. PolicyConfiguration takes precedence over it, and the annotation adoption-policy of an
	// object over both. As for all policies here, a value that does not exist, also an empty one, is
	// an error of SetupWithManager.
	//
	// Default: AdoptionPolicyIfUnowned
	AdoptionPolicy *reconciler.AdoptionPolicy
	// UpdatePolicy is how dependent objects are written. PolicyConfiguration takes precedence over
	// it, and the annotation update-policy of an object over both.
	//
	// Default: UpdatePolicyReplace
	UpdatePolicy *reconciler.UpdatePolicy
	// DeletePolicy is whether dependent objects are deleted or orphaned when they are no longer
	// desired. PolicyConfiguration takes precedence over it, and the annotation delete-policy of an
	// object over both.
	//
	// Default: DeletePolicyDelete
	DeletePolicy *reconciler.DeletePolicy
	// DriftPolicy is what happens when another client changes or deletes a dependent object.
	// Precedence, lowest first: this option, DriftConfiguration, the annotation drift-policy of the
	// component, and that of the object.
	//
	// Default: DriftPolicyRepair
	DriftPolicy *v1alpha1.DriftPolicy
	// MissingNamespacesPolicy is whether a namespace is created if dependent objects need it and no
	// manifest defines it. PolicyConfiguration takes precedence over it.
	//
	// Default: MissingNamespacesPolicyCreate; with the option Namespaced MissingNamespacesPolicyDoNotCreate
	MissingNamespacesPolicy *reconciler.MissingNamespacesPolicy
	// ManagementPolicy is which changes to the dependents of a component are allowed at all. The
	// annotation management-policy of the component takes precedence.
	//
	// Default: v1alpha1.ManagementPolicyManage
	ManagementPolicy *v1alpha1.ManagementPolicy
	// SchemeBuilder adds types to the scheme of the clients for target clusters, on top of those that
	// the scheme of the manager has. The generator may add more. An error or a panic in it is an
	// error of SetupWithManager.
	//
	// Default: nil, which adds nothing
	SchemeBuilder types.SchemeBuilder
	// Objects are rules about dependent objects by their type.
	//
	// Default: those of ObjectOptions
	Objects ObjectOptions
	// Revisions are about revisions: when one is ready, how it starts, and the way back.
	//
	// Default: those of RevisionOptions
	Revisions RevisionOptions
	// Users are about what users may do who write components or namespaces.
	//
	// Default: those of UserOptions
	Users UserOptions
	// Controller are about the controller: its client, its queue, its leader election and its traces.
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
	// ReadyWhen adds rules for when the objects of some types are ready. The first rule that matches
	// the type counts; the annotation ready-when of an object takes precedence. Invalid rules are an
	// error of SetupWithManager.
	//
	// Default: none
	ReadyWhen []reconciler.ReadyWhen
	// Outputs are values of dependent objects that a component publishes, in addition to those of the annotations output and
	// secret-output. Invalid outputs are an error of SetupWithManager.
	//
	// Default: none
	Outputs []Output
	// IgnoreFields are rules for fields that the reconciler does not own: it writes them at the
	// creation of an object only, and their changes are no drift. All rules that match count, in
	// addition to the annotation ignore-fields of the object. Invalid rules are an error of
	// SetupWithManager.
	//
	// Default: none
	IgnoreFields []reconciler.IgnoreFields
	// SharedTypes are the names of CustomResourceDefinitions that all components share although they are not in the folder crds of a chart,
	// such as those of a kustomization: they belong to the operator and to none of the components. What is rendered of them must be the
	// same for all components. A text that is no such name, or is there twice, is an error of SetupWithManager.
	//
	// Default: those in the folder crds of the chart
	SharedTypes []string
}

// RevisionOptions are about revisions: when one is ready, how it starts, and the way back.
type RevisionOptions struct {
	// RevisionHistoryLimit is how many revisions of a component are kept, so that it can be rolled
	// back to one of them: in the status, and their manifests in a Secret beside the component,
	// encrypted. The last revision that was ready is kept in addition. 0 keeps no manifests, so that
	// no rollback is possible. A negative value is an error of SetupWithManager.
	//
	// Unit: revisions
	// Default: 10
	RevisionHistoryLimit *int
	// RollbackOnFailure rolls a component back to the last revision that was ready if a dependent
	// object of a later revision fails, or is not ready within the timeout. RollbackConfiguration
	// takes precedence over it.
	//
	// Default: false: the failed revision stays applied
	RollbackOnFailure bool
	// RequireApproval lets each new revision of a component wait until its plan is approved: the hash
	// of the plan, which the status has, must stand in the annotation approve of the component. The
	// annotation require-approval takes precedence over it.
	//
	// Default: false: nothing waits
	RequireApproval bool
	// HooksOnRestore runs the hooks of an installation also for a component that was restored from a backup, and finds objects of a
	// previous component of its name. Users who may write such objects decide about that by label and annotation.
	//
	// Default: false: they do not run
	HooksOnRestore bool
	// MinReadySeconds is for how long each container without a readiness and a startup probe has to run until a new revision is
	// ready: Kubernetes takes it for ready between two crashes, too. The field minReadySeconds of a workload takes precedence
	// over it. 0 means that pods are not looked at. A negative value is an error of SetupWithManager.
	//
	// Unit: seconds
	// Default: 10
	MinReadySeconds *int
	// Rollout limits how many components are updated at the same time when the operator comes with another chart or
	// generator. It needs a RevisionHistoryLimit of at least 1 and a generator with a digest, as those of files have; see BuildDigest.
	//
	// Default: none: all components are updated at once
	Rollout *Rollout
	// BuildDigest is the digest of Go code that has none by manifests.WithDigest, such as the version of the operator. So
	// another build starts a new revision of each component for which it renders something else, and of all components if a
	// pre-reconcile hook is not marked by PreviewSafe.
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
	// TargetDialPolicy decides which addresses the API servers of kubeconfigs may have. It is asked
	// before every connection to one, after names were resolved; the network is "tcp4" or "tcp6".
	// An error refuses the address and says why.
	//
	// Default: DenyInternal: addresses of the machine, of its links and of metadata services are refused
	TargetDialPolicy func(ctx context.Context, network string, address netip.AddrPort) error
	// AllowSecretPatches lets the patches of a component change Secrets. Who may write components can then find out the
	// values of the Secrets that are rendered for them, also without a right to read Secrets.
	//
	// Default: false: a patch that names a Secret is an error, and other patches leave Secrets as they are
	AllowSecretPatches bool
	// AdoptHelmReleases lets a new component take over a Helm release by the annotation adopt-helm-release. Users who may
	// create components can then take over the release with the name of the deployment in the namespace of the component.
	//
	// Default: false: the annotation is an error
	AdoptHelmReleases bool
	// DisablePreviews keeps the operator from answering users who ask, by the annotation preview, what it
	// would do for a component. Otherwise it needs the rights to get, list, create, patch and delete Secrets beside the
	// components.
	//
	// Default: false: they are answered
	DisablePreviews bool
	// NamespaceManagementPolicies makes the annotation management-policy of a namespace count for all
	// components in it that have none of their own. The operator then needs the right to get, list
	// and watch namespaces, and reads the namespace in every reconcile. If it cannot be read, nothing
	// is done for the component.
	//
	// Default: false: annotations of namespaces do not count
	NamespaceManagementPolicies bool
	// RequireNamespaces are the namespaces of which components may require objects, beside their own; see RequirementsSpec. Users who
	// write components then find out the state and the outputs of these objects. "*" is all namespaces, and objects that have none.
	// A text that is no name of a namespace is an error of SetupWithManager.
	//
	// Default: none: components require objects of their own namespace
	RequireNamespaces []string
}

// ControllerOptions are about the controller: its client, its queue, its leader election and its traces.
type ControllerOptions struct {
	// NewClient makes the client by which components are read and written, references are loaded, and
	// which generators and hooks find in manifests.Context. It must read from the server.
	//
	// Default: client.New of controller-runtime
	NewClient client.NewClientFunc
	// MaxConcurrentReconciles is how many components are reconciled at the same time. It has no
	// effect on SetupWithManagerAndBuilder, where the builder says it.
	//
	// Unit: components
	// Default: what the manager says, else 5
	MaxConcurrentReconciles *int
	// TargetConcurrency is how many components may be reconciled in the cluster of one kubeconfig at
	// the same time, so that a cluster that does not answer delays few of them. A value below 1 is an
	// error of SetupWithManager.
	//
	// Unit: components
	// Default: 1
	TargetConcurrency *int
	// RateLimiter says when a component is requeued after an error. It has no effect on
	// SetupWithManagerAndBuilder, where the builder says it.
	//
	// Default: after 200 milliseconds, doubling up to two minutes; after about 3 seconds at most if
	// another number of dependents is ready since the last error
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// LabelSelector selects the components of this reconciler; the others are not touched, not even
	// when they are deleted. So several operators can share the components of one type; a change of
	// its labels hands a component over to another. To save memory, select the same in the options of
	// the manager's cache.
	//
	// Default: all components
	LabelSelector *metav1.LabelSelector
	// LeaderLock is the lock of the manager's leader election. With it, the reconciler starts nothing
	// once the lease is so old that another process may lead.
	//
	// Default: none; the age of the lease is not checked
	LeaderLock *LeaderLock
	// TracerProvider makes OpenTelemetry spans around each reconcile, its hooks, its rendering and
	// planning, and each batch and write.
	//
	// Default: none; nothing is traced
	TracerProvider trace.TracerProvider
}

// OperatorOptions are about the place and the identity of the operator.
type OperatorOptions struct {
	// OperatorNamespace is where the operator keeps objects of its own, such as the secret with the
	// key of its digests.
	//
	// Default: the value of the environment variable POD_NAMESPACE, else the namespace of the pod that the operator runs in, else "default"
	OperatorNamespace *string
	// Namespaced says that the operator has rights in OperatorNamespace only, by a Role. Its components
	// are there: set the manager's Cache.DefaultNamespaces to it, too. The uid of that namespace
	// identifies the cluster, unless ClusterUID is set, so the option must not change as long as there
	// are components; the operator needs the right to get it. A missing namespace is not created, and
	// a kubeconfig that leads to the local cluster is noticed only with ClusterUID.
	//
	// Default: false: the operator has rights in the whole cluster
	Namespaced bool
	// ClusterUID identifies the cluster that components live in. It must never change, and must be
	// another one in each cluster. If the operator may not get that namespace, a kubeconfig that
	// leads to the local cluster is noticed only if this is the uid of the namespace.
	//
	// Default: the uid of the namespace kube-system, which the operator needs the right to get; with the
	// option Namespaced that of OperatorNamespace
	ClusterUID *string
	// AdoptOperator is the former name of an operator that was renamed. The operator takes over the components of that name: it
	// removes the former finalizer, and writes each dependent once for the new label and annotation. The annotation
	// adopt-operator of a component takes precedence.
	//
	// Default: none; a component that another operator has claimed is left alone
	AdoptOperator string
	// AdoptHelmOperator says that the operator replaces a Helm operator of operator-sdk, or of helm-operator-plugins, for the same kind.
	// A component that is not applied yet takes over the last revision of the Helm release with the name and the namespace of its
	// deployment, as with the annotation adopt-helm-release. The finalizer of the Helm operator is removed. If it comes back, the Helm
	// operator is running, and the component is left alone. The records of the release are deleted with the component. The operator needs
	// the rights to list and delete Secrets in the namespaces of components.
	//
	// Default: false: a release is taken over by the annotation only, and the finalizer is foreign
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
// Limit: the revisions that are kept of a component, unless the option RevisionHistoryLimit says otherwise;
// the last one that was ready is kept in addition.
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
