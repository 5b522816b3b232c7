// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/status"
	"github.com/corbel-run/corbel/pkg/types"
)

// ReconcilerOptions tune a Reconciler.
type ReconcilerOptions struct {
	// FieldOwner is the field manager of all writes.
	//
	// Default: the reconciler name
	FieldOwner *string
	// AdoptionPolicy decides about objects that exist already and have no owner or another one.
	//
	// Default: AdoptionPolicyIfUnowned
	AdoptionPolicy *v1alpha1.AdoptionPolicy
	// UpdatePolicy is how objects are written.
	//
	// Default: UpdatePolicyReplace
	UpdatePolicy *v1alpha1.UpdatePolicy
	// DeletePolicy is whether objects are deleted or orphaned when they are no longer desired.
	//
	// Default: DeletePolicyDelete
	DeletePolicy *v1alpha1.DeletePolicy
	// DriftPolicy decides about objects that another client changes or deletes.
	//
	// Default: DriftPolicyRepair
	DriftPolicy *v1alpha1.DriftPolicy
	// MissingNamespacesPolicy is whether a namespace is created if objects need it and none of them
	// defines it.
	//
	// Default: MissingNamespacesPolicyCreate
	MissingNamespacesPolicy *v1alpha1.MissingNamespacesPolicy
	// SharedTypes are CustomResourceDefinitions that belong to the Reconciler. They are applied with the objects
	// of an owner that contain them, and stay when the owner is deleted. A definition of a higher version is not
	// replaced.
	//
	// Default: none
	SharedTypes []types.SharedType
	// Parallelism is how many writes all calls of Apply and Delete for one target have in progress at once. A fast
	// server gets more.
	//
	// Default: 8
	// Unit: writes
	Parallelism int
	// Scheme is for objects that generators return typed and without a kind.
	//
	// Default: the scheme of client-go
	Scheme *runtime.Scheme
	// ReadyWhen defines when objects of some types are ready. The first rule for the type counts; the annotation
	// ready-when takes precedence.
	//
	// Default: none
	ReadyWhen []ReadyWhen
	// IgnoreFields names fields that are written only at the creation of an object, and whose changes are no
	// drift. All matching rules and the annotation ignore-fields count. After a change of the rules an object is
	// written once.
	//
	// Default: none
	IgnoreFields []IgnoreFields
	// TracerProvider makes spans of reading, planning, batches and writes.
	//
	// Default: none
	TracerProvider trace.TracerProvider
	// DigestKey is the key of the digests and seals in inventories. Without a key, a reader of an inventory can
	// guess the content of Secrets, and an object without label and annotation is not recognized. After a change
	// of the key all objects count as changed, except for items of Rekeyed.
	//
	// Default: none
	DigestKey []byte
	// Changed is called when another client has changed an object of an owner; call Apply or Delete then. Several
	// goroutines call Changed, and it must not block. With it, objects are watched until StopWatching or Close.
	//
	// Default: nil: nothing is watched
	Changed func(owner Owner, change Change)
	// LocalOwners says that the owners are in the cluster of their objects, so the namespace of an owner is not
	// read.
	//
	// Default: false
	LocalOwners bool
	// WatchNamespaces watches only the namespaces of the objects, for a user with rights in namespaces only.
	//
	// Default: false
	WatchNamespaces bool
	// Now is the clock.
	//
	// Default: time.Now
	Now func() time.Time
}

// settings are the options, complete and valid. The fields of the same names as options are their resolved form.
type settings struct {
	ReconcilerOptions
	fieldOwner        string
	policies          policy.Layer
	missingNamespaces v1alpha1.MissingNamespacesPolicy
	readyWhen         []observe.ReadyWhen
	ignoreRules       []policy.IgnoreRule
	hasher            digest.Hasher
}

// resolve validates the options, and reports all mistakes at once.
func (o ReconcilerOptions) resolve(name string) (settings, error) {
	o.Parallelism, o.Scheme = cmp.Or(o.Parallelism, 8), cmp.Or(o.Scheme, scheme.Scheme)
	if o.Now == nil {
		o.Now = time.Now
	}
	s := settings{
		ReconcilerOptions: o,
		fieldOwner:        cmp.Or(ptr.Deref(o.FieldOwner, ""), name),
		policies: policy.Layer{
			Adoption: ptr.Deref(o.AdoptionPolicy, ""),
			Update:   ptr.Deref(o.UpdatePolicy, ""),
			Delete:   ptr.Deref(o.DeletePolicy, ""),
			Drift:    ptr.Deref(o.DriftPolicy, ""),
		},
		hasher: digest.Hasher{Key: o.DigestKey},
	}
	var mistakes []error
	for _, rule := range o.ReadyWhen {
		mistakes = append(mistakes, rule.Validate())
		s.readyWhen = append(s.readyWhen, observe.ReadyWhen(rule))
	}
	for _, rule := range o.IgnoreFields {
		resolved, err := rule.resolve()
		mistakes = append(mistakes, err)
		s.ignoreRules = append(s.ignoreRules, resolved)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		mistakes = append(mistakes, fmt.Errorf("reconciler name %q: %s", name, strings.Join(problems, "; ")))
	}
	if len(s.fieldOwner) == 0 || len(s.fieldOwner) > maxFieldOwner {
		mistakes = append(mistakes, fmt.Errorf("field owner %q: must have 1 to %d characters", s.fieldOwner, maxFieldOwner))
	}
	if o.Parallelism < 1 {
		mistakes = append(mistakes, fmt.Errorf("parallelism %d: must be at least 1", o.Parallelism))
	}
	_, invalidPolicy := policy.Defaults(s.policies)
	var invalidMissing error
	s.missingNamespaces, invalidMissing = policy.ParseMissingNamespaces(ptr.Deref(o.MissingNamespacesPolicy, ""))
	return s, errors.Join(append(mistakes, invalidPolicy, invalidMissing)...)
}

// maxFieldOwner is the server's limit on the name of a field manager.
const maxFieldOwner = 128

// ReadyWhen defines when the objects of some types are ready, in place of the rule of package status.
type ReadyWhen struct {
	// Type is the pattern of the types.
	//
	// Default: none; it is required
	Type TypeInfo
	// Expression is CEL over the object, which is the variable self, such as "self.status.phase == 'Running'". It
	// must give a bool.
	//
	// Default: none; it is required
	Expression string
}

// Validate compiles the expression and reports its mistakes.
func (r ReadyWhen) Validate() error {
	var errs []error
	if r.Type.Kind == "" {
		errs = append(errs, errors.New("the kind is missing"))
	}
	if r.Expression == "" {
		errs = append(errs, errors.New("the expression is missing"))
	} else if _, err := status.CompileReadyWhen(r.Expression); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("ReadyWhen of the type %s.%s: %w", r.Type.Kind, r.Type.Group, errors.Join(errs...))
}

// IgnoreFields names fields that other clients set on the objects of some types.
type IgnoreFields struct {
	// Type is the pattern of the types: a group, "*" or "*.suffix"; and a kind or "*".
	//
	// Default: none; it is required
	Type TypeInfo
	// Selector selects the objects by the labels of their manifests.
	//
	// Default: all objects of the type
	Selector *metav1.LabelSelector
	// Paths are JSON pointers (RFC 6901) to fields with everything below them, such as /spec/replicas or
	// /metadata/annotations/example.com~1touched. A number is the position in a list of the manifest.
	//
	// Default: none; it is required
	Paths []string
}

// Validate reports all mistakes of the rule in one error.
func (f IgnoreFields) Validate() error {
	_, err := f.resolve()
	return err
}

// resolve returns the rule in the form in which policies are made of it.
func (f IgnoreFields) resolve() (policy.IgnoreRule, error) {
	rule := policy.IgnoreRule{Type: f.Type, Selector: labels.Everything(), Fields: f.Paths}
	var errs []error
	if f.Type.Kind == "" {
		errs = append(errs, errors.New("the kind is missing"))
	}
	if f.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(f.Selector)
		if err != nil {
			errs = append(errs, fmt.Errorf("selector: %w", err))
		}
		rule.Selector = selector
	}
	if err := policy.CheckPointers(f.Paths); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return rule, fmt.Errorf("IgnoreFields of the type %s.%s: %w", f.Type.Kind, f.Type.Group, errors.Join(errs...))
	}
	return rule, nil
}
