// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// Owner identifies the owner of the objects that are written: a component, a release.
type Owner struct {
	Group, Kind, Namespace, Name string
	// UID distinguishes incarnations of the same owner.
	UID types.UID
}

// Policies are defaults for one request; empty values mean the defaults of
// the Reconciler. Annotations on objects take precedence.
type Policies struct {
	Adoption          v1alpha1.AdoptionPolicy
	Update            v1alpha1.UpdatePolicy
	Delete            v1alpha1.DeletePolicy
	Drift             v1alpha1.DriftPolicy
	MissingNamespaces v1alpha1.MissingNamespacesPolicy
	// AdoptHelmRelease is a Helm release whose objects are adopted whatever the adoption policy is,
	// unless their own annotation is never or ignore, or they have another owner beside its
	// HelmRelease. Nil means none.
	AdoptHelmRelease *HelmRelease
	// AdoptOperator is the name of a reconciler whose place this one takes: objects that its label and annotation give to the
	// owner are the owner's. Empty means none.
	AdoptOperator string
	// ReapplyInterval is how often objects are refreshed although nothing
	// changed; zero means never.
	ReapplyInterval time.Duration
}

// HelmRelease identifies a release of Helm.
type HelmRelease struct {
	Namespace, Name string
	// Flux is the HelmRelease of Flux that the manifests of the release name in their labels; zero if they name none.
	Flux types.NamespacedName
}

// ApplyRequest asks to bring the cluster to the given objects.
type ApplyRequest struct {
	Owner Owner
	// Namespace is for namespaced objects that set none.
	Namespace string
	// Objects are the desired objects; they are not changed.
	Objects []client.Object
	// Desired is the set that an earlier call for the same owner returned in its Outcome. If it is
	// set, it counts instead of Objects, Namespace, ComponentDigest, Policies and ManagedTypes,
	// none of which may have changed since. Apply returns ErrOutdated if it does not hold any more.
	Desired *DesiredSet
	// Inventory is the record as it is on the server.
	Inventory v1alpha1.Inventory
	// ComponentDigest identifies the state of the component.
	ComponentDigest string
	Policies        Policies
	// ManagedTypes are patterns of types that appear at run time.
	ManagedTypes []v1alpha1.TypeInfo
	// Timeout is how long a namespace is kept that is not needed any more and the content of
	// which cannot be read, if it was created because objects live in it. Then it
	// is orphaned, with a note. Zero means that it is kept until its content can
	// be read.
	Timeout time.Duration
	// AllowEmpty lets an empty set of objects remove everything that is in the
	// inventory. Otherwise it is an *InvalidError: most times it comes from a
	// wrong path or a wrong value.
	AllowEmpty bool
	// Protected are objects that the owner itself needs, such as the definition
	// of its type or a Secret with credentials. They are never deleted, and to want
	// them is an *InvalidError, unless they are namespaces. The owner itself is
	// always protected.
	Protected []report.Key
	// Urgent means that a user waits for the outcome. Then up to 16 recorded objects that no watch
	// knows yet are read. Otherwise, and if there are more, Apply waits up to ten seconds until the
	// watches of their types have started. Default is false.
	Urgent bool
	// Confidential means that the objects may hold values of Secrets that were read for them. Then
	// errors have the reason and the fields of a server's refusal, without its message, and plans
	// have no values. Answers of a server about Secrets are never repeated. Default is false.
	Confidential bool
	// Stored means that Objects come from a set that was stored. Then nothing but the names of
	// ReconcilerOptions.SharedTypes is used of it. Default is false.
	Stored bool
	// Retain are recorded objects that stay as they are, and recorded, although they are not
	// desired, such as volumes during a rollback.
	Retain []report.Key
	// TimedOut means that the owner has waited longer than its timeout for its objects to become
	// ready. Objects that otherwise stay until the new ones are ready are removed then. Default is
	// false.
	TimedOut bool
	// RepairOnly means that the set is not the final one. Then an object of it is repaired if it
	// was last made of its very manifest. Every other recorded object stays as it is, and nothing
	// is removed. Default is false.
	RepairOnly bool
	// Record makes the inventory durable; it is called before objects that
	// are not in the inventory are written.
	Record func(ctx context.Context, inventory v1alpha1.Inventory) error
	// Confirm returns an error unless the owner is still as in this request and it is for this
	// process to act: it reads the owner again, and looks whether its lease still holds. It is
	// called before an object is created, unless Record or Confirm succeeded in this call in the
	// last five seconds; never by two at once. Its error ends the call as a *SupersededError.
	// Without Confirm nothing is asked.
	Confirm func(ctx context.Context) error
}

// DeleteRequest asks to delete everything that is in the inventory.
type DeleteRequest struct {
	Owner Owner
	// Inventory is the record as it is on the server.
	Inventory v1alpha1.Inventory
	// Objects are the objects that the owner renders. They are needed only if the inventory records
	// delete hooks; objects that do not run before or after the deletion are ignored. The next four
	// fields are about them.
	Objects         []client.Object
	Namespace       string
	Policies        Policies
	ComponentDigest string
	// Confidential is like ApplyRequest.Confidential.
	Confidential bool
	// SkipHooks deletes without hooks. Hooks that have run are removed.
	SkipHooks bool
	// ManagedTypes are patterns of types that appeared at run time.
	ManagedTypes []v1alpha1.TypeInfo
	// Timeout is how long namespaces with unreadable content are kept, as in ApplyRequest.
	Timeout time.Duration
	// Protected are objects that are never deleted, as in ApplyRequest.
	Protected []report.Key
	// Record makes the inventory durable, as in ApplyRequest. A deletion needs it only
	// if an object appears again; then it fails without Record.
	Record func(ctx context.Context, inventory v1alpha1.Inventory) error
	// SoleWriter means that no request of another process, and none of this one that was not
	// answered, can create any of the objects. Without it, removed objects are looked for once more
	// at the end.
	SoleWriter bool
	// Confirm guards the creation of hooks, as in ApplyRequest.
	Confirm func(ctx context.Context) error
}

type (
	// AdoptionPolicy decides about an object that exists and is not ours.
	AdoptionPolicy = v1alpha1.AdoptionPolicy
	// UpdatePolicy decides how an object is written.
	UpdatePolicy = v1alpha1.UpdatePolicy
	// DeletePolicy decides about an object that is no longer desired.
	DeletePolicy = v1alpha1.DeletePolicy
	// MissingNamespacesPolicy decides whether missing namespaces are created.
	MissingNamespacesPolicy = v1alpha1.MissingNamespacesPolicy
	// TypeInfo identifies one or several Kubernetes types.
	TypeInfo = v1alpha1.TypeInfo
)

// The defaults of the policies. Package v1alpha1 has the other values and explains them.
const (
	AdoptionPolicyIfUnowned       = v1alpha1.AdoptionPolicyIfUnowned
	UpdatePolicyReplace           = v1alpha1.UpdatePolicyReplace
	DeletePolicyDelete            = v1alpha1.DeletePolicyDelete
	MissingNamespacesPolicyCreate = v1alpha1.MissingNamespacesPolicyCreate
)

// ParseDriftPolicy reads the value of an annotation, in kebab-case or CamelCase.
// The error lists the values that there are.
func ParseDriftPolicy(value string) (v1alpha1.DriftPolicy, error) { return policy.ParseDrift(value) }
