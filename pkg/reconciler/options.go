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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// ReconcilerOptions tune a Reconciler. The zero value is ready to use.
type ReconcilerOptions struct {
	// FieldOwner is the field manager of all writes. Defaults to the reconciler name.
	FieldOwner *string
	// AdoptionPolicy defaults to AdoptionPolicyIfUnowned.
	AdoptionPolicy *v1alpha1.AdoptionPolicy
	// UpdatePolicy defaults to UpdatePolicyReplace.
	UpdatePolicy *v1alpha1.UpdatePolicy
	// DeletePolicy defaults to DeletePolicyDelete.
	DeletePolicy *v1alpha1.DeletePolicy
	// DriftPolicy defaults to DriftPolicyRepair.
	DriftPolicy *v1alpha1.DriftPolicy
	// MissingNamespacesPolicy defaults to MissingNamespacesPolicyCreate.
	MissingNamespacesPolicy *v1alpha1.MissingNamespacesPolicy
	// Parallelism bounds the requests under way at once for one request.
	// Defaults to 8.
	Parallelism int
	// Scheme is for objects that generators return typed and without a kind.
	// Defaults to the scheme of client-go.
	Scheme *runtime.Scheme
	// ReadyWhen tells when objects of some types are ready, beyond what is known
	// about them. The first rule whose type matches counts; the annotation
	// ready-when of an object takes precedence.
	ReadyWhen []ReadyWhen
	// IgnoreFields names fields that are not written after the creation of an object, and
	// whose drift is none, by type and labels. All rules that match count, and so does the
	// annotation ignore-fields of an object. When the rules for an object change, it is
	// written once.
	IgnoreFields []IgnoreFields
	// TypeFence closes the gap between the last look at the instances of a type
	// (or the content of a namespace) and its deletion: a
	// ValidatingAdmissionPolicy that exists only for that moment lets nobody
	// create any. It needs the rights to create, list and delete
	// ValidatingAdmissionPolicies and their bindings, and to create ConfigMaps,
	// with dry-run, in the namespace default. Without it, what somebody creates
	// in that moment is lost, and a note ForeignInstancesLost says so.
	TypeFence bool
	// TracerProvider makes spans around reading, planning and every batch and
	// write. Nothing is traced by default.
	TracerProvider trace.TracerProvider
	// DigestKey is the key of the digests in inventories, by HMAC. Digests cover the
	// content of secrets; without a key, who reads an inventory can try out what a
	// secret might be. The items of inventories are sealed with it, too: without a key
	// an object that lost its label and its annotation is not known as ours any more.
	// With another key every object counts as changed, unless the items go through Rekeyed.
	DigestKey []byte
	// Claims are shared by the Reconcilers of one name, so that an object that one
	// owner drops is left to another who waits for it. By default owners of other
	// Reconcilers are not known.
	Claims *Claims
	// Changed is told when somebody else has changed an object of an owner, so that it
	// is worth to call Apply or Delete again; the owner is without its uid. It is called
	// from several goroutines and must not block. With it, objects are watched from the first call for their
	// owner until Leave or Close, as far as the identity may list and watch them, and
	// are not read one by one any more. Without it, nothing is watched.
	Changed func(owner Owner, change Change)
	// Now is the clock; defaults to time.Now.
	Now func() time.Time
}

// settings are the options, resolved and valid.
type settings struct {
	fieldOwner        string
	policies          policy.Layer
	missingNamespaces v1alpha1.MissingNamespacesPolicy
	parallelism       int
	typeFence         bool
	readyWhen         []observe.ReadyWhen
	ignoreRules       []policy.IgnoreRule
	scheme            *runtime.Scheme
	hasher            digest.Hasher
	claims            *Claims
	changed           func(Owner, Change) // nil: nothing is watched
	now               func() time.Time
}

// resolve validates the options, and reports all mistakes at once.
func (o ReconcilerOptions) resolve(name string) (settings, error) {
	s := settings{
		fieldOwner: cmp.Or(value(o.FieldOwner, ""), name),
		policies: policy.Layer{
			Adoption: value(o.AdoptionPolicy, ""),
			Update:   value(o.UpdatePolicy, ""),
			Delete:   value(o.DeletePolicy, ""),
			Drift:    value(o.DriftPolicy, ""),
		},
		parallelism: cmp.Or(o.Parallelism, 8),
		typeFence:   o.TypeFence,
		scheme:      cmp.Or(o.Scheme, scheme.Scheme),
		hasher:      digest.Hasher{Key: o.DigestKey},
		claims:      cmp.Or(o.Claims, &Claims{}),
		changed:     o.Changed,
		now:         o.Now,
	}
	if s.now == nil {
		s.now = time.Now
	}
	var mistakes []error
	s.readyWhen, mistakes = expressions(o.ReadyWhen)
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
	if s.parallelism < 1 {
		mistakes = append(mistakes, fmt.Errorf("parallelism %d: must be at least 1", s.parallelism))
	}
	if _, err := policy.Defaults(s.policies); err != nil {
		mistakes = append(mistakes, err)
	}
	var err error
	if s.missingNamespaces, err = policy.ParseMissingNamespaces(value(o.MissingNamespacesPolicy, "")); err != nil {
		mistakes = append(mistakes, err)
	}
	return s, errors.Join(mistakes...)
}

// maxFieldOwner is the server's limit on the name of a field manager.
const maxFieldOwner = 128

func value[T any](pointer *T, otherwise T) T {
	if pointer == nil {
		return otherwise
	}
	return *pointer
}
