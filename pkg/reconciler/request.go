// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/rights"
)

// Owner identifies on whose behalf objects are written: a component, a release.
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
	// ReapplyInterval is how often objects are refreshed although nothing
	// changed; zero means never.
	ReapplyInterval time.Duration
}

// ApplyRequest asks to bring the cluster to the given objects.
type ApplyRequest struct {
	Owner Owner
	// Namespace is for namespaced objects that set none.
	Namespace string
	// Objects are the desired objects; they are not changed.
	Objects []client.Object
	// Desired is what an earlier call for the same owner returned in its Outcome. If it
	// is set, it counts instead of Objects, Namespace, ComponentDigest, Policies and
	// ManagedTypes, none of which may have changed since. Apply returns ErrOutdated if
	// it does not hold any more.
	Desired *DesiredSet
	// Inventory is the record as it is on the server.
	Inventory v1alpha1.Inventory
	// ComponentDigest identifies the state of the component.
	ComponentDigest string
	Policies        Policies
	// ManagedTypes are patterns of types that appear at run time.
	ManagedTypes []v1alpha1.TypeInfo
	// Timeout is how long a namespace is kept that is not needed any more and whose
	// content cannot be read, if it was created because objects live in it. Then it
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
	Protected []Key
	// Record makes the inventory durable; it is called before objects that
	// are not in the inventory are written. If Record is nil, Apply returns
	// after planning such objects: the caller saves the inventory of the
	// Outcome and calls again.
	Record func(ctx context.Context, inventory v1alpha1.Inventory) error
	// Confirm returns an error unless the owner is still as this request says
	// and it is for this process to act: it reads the owner again, and looks
	// whether its lease still holds. It is called before an object is created,
	// unless Record or Confirm succeeded in this call in the last five seconds;
	// never by two at once. Its error ends the call as a *SupersededError. Without
	// Confirm nothing is asked.
	Confirm func(ctx context.Context) error
}

// DeleteRequest asks to delete everything that is in the inventory.
type DeleteRequest struct {
	Owner Owner
	// Inventory is the record as it is on the server.
	Inventory v1alpha1.Inventory
	// Objects are what the owner renders. They are needed only if the
	// inventory says that there are delete hooks; what does not run before or
	// after the deletion is ignored. The next four fields are about them.
	Objects         []client.Object
	Namespace       string
	Policies        Policies
	ComponentDigest string
	// SkipHooks deletes without them. Those that have run are removed.
	SkipHooks bool
	// ManagedTypes are patterns of types that appeared at run time.
	ManagedTypes []v1alpha1.TypeInfo
	// Timeout is how long namespaces with unreadable content are kept, as in ApplyRequest.
	Timeout time.Duration
	// Protected are objects that are never deleted, as in ApplyRequest.
	Protected []Key
	// Record makes the inventory durable, as in ApplyRequest. Deletion needs
	// it only rarely; nil is allowed.
	Record func(ctx context.Context, inventory v1alpha1.Inventory) error
	// Confirm guards the creation of hooks, as in ApplyRequest.
	Confirm func(ctx context.Context) error
}

// Outcome is what became of a request. It is valid also when the call
// returned an error.
type Outcome struct {
	// Inventory is the record to persist.
	Inventory v1alpha1.Inventory
	// Unrecorded: the inventory must be saved before anything can be written; it is set only if the request had no Record.
	Unrecorded bool
	// Waiting are the objects that are not settled, and why. Nothing waiting
	// and no error means that the request is fulfilled.
	Waiting []Wait
	// Foreign are the objects of other owners that some of them wait for: when one changes,
	// another call may come further.
	Foreign []Foreign
	// Settled and Total count the desired objects (or, in deletion, those that
	// were recorded at the start of this call).
	Settled, Total int
	// ManifestDigest identifies the set of desired manifests.
	ManifestDigest string
	// Desired are the desired objects, for calls that follow; nil if there are mistakes in
	// them, and after a deletion.
	Desired *DesiredSet
	// Returned are objects of ours that existed again, or could not be read, after they had
	// been removed and had left the inventory. They are in it again.
	Returned []Key
	// NextDriftCheck is when the first object may be read that was not read, because it is
	// edited too often; zero if there is none. No Change follows then.
	NextDriftCheck time.Time
	// Steps counts what was done, by verb, such as "create".
	Steps map[string]int
	// Notes are sentences worth an event: adopted, orphaned, put back, repaired.
	Notes []Note
	// Drifted are the objects that another client changed or deleted and that are left
	// as they are, because their drift policy is to report it.
	Drifted []Deviation
	// Missing are the rights that the identity lacks to apply the objects and to remove them
	// again, as far as this call found out: before its first write, and when something was
	// forbidden. They stop nothing by themselves.
	Missing MissingRights
	// failed: the call returned an error, so it did not come to its end.
	failed bool
}

// Done reports whether nothing is left to do and nothing is waited for. It is false
// if the call returned an error.
func (o Outcome) Done() bool { return !o.failed && !o.Unrecorded && len(o.Waiting) == 0 }

type (
	// Key identifies an object. Its fields are Group, Kind, Namespace and Name.
	Key = plan.Key
	// Wait is an object that is not settled. Its fields are Key, Reason (see WaitReason),
	// Message, and Until: when the object settles by itself, zero if that is not known.
	Wait = plan.Wait
	// Note is a sentence about an object. Its fields are Key, Message, and Warning: the
	// reason of an event of type Warning, empty if the note is only information.
	Note = plan.Note
	// Deviation is an object that differs from its manifest. Its fields are Key and Drift.
	Deviation = plan.Deviation
	// Drift is what is known about a deviation: Missing or Replaced if another client
	// deleted the object; else Fields, the paths that differ, and More, how many there are
	// beyond those; and the field Manager that changed them last, At that time.
	Drift = plan.Drift
	// MissingRights are rules to grant, one element for each Namespace with its Rules. An
	// empty namespace is the whole cluster. They print themselves as YAML.
	MissingRights = rights.Missing
)

// Blocker is an object that blocks the deletion of a component.
type Blocker struct {
	// Dependent names the object that cannot be deleted, such as
	// "CustomResourceDefinition foos.example.com", or the pattern of a type.
	Dependent string
	// Message says what blocks it, naming the first few objects and how many there are.
	Message string
	// Foreign are the types of these objects, as far as they are known.
	Foreign []Foreign
}

type (
	// AdoptionPolicy says what happens when an object exists and is not ours.
	AdoptionPolicy = v1alpha1.AdoptionPolicy
	// ReconcilePolicy says when an object is written again.
	ReconcilePolicy = v1alpha1.ReconcilePolicy
	// UpdatePolicy says how an object is written.
	UpdatePolicy = v1alpha1.UpdatePolicy
	// DeletePolicy says what happens to an object that is no longer desired.
	DeletePolicy = v1alpha1.DeletePolicy
	// DriftPolicy says what happens when another client changed or deleted an object.
	DriftPolicy = v1alpha1.DriftPolicy
	// MissingNamespacesPolicy says whether missing namespaces are created.
	MissingNamespacesPolicy = v1alpha1.MissingNamespacesPolicy
	// TypeInfo identifies one or several Kubernetes types.
	TypeInfo = v1alpha1.TypeInfo
	// Inventory is the durable record of the dependent objects.
	Inventory = v1alpha1.Inventory
	// InventoryItem is the record of one dependent object.
	InventoryItem = v1alpha1.InventoryItem
	// InventoryType is a type of recorded objects.
	InventoryType = v1alpha1.InventoryType
)

// The values of the policies; see package v1alpha1 for what they mean.
const (
	AdoptionPolicyIfUnowned = v1alpha1.AdoptionPolicyIfUnowned
	AdoptionPolicyNever     = v1alpha1.AdoptionPolicyNever
	AdoptionPolicyAlways    = v1alpha1.AdoptionPolicyAlways
	AdoptionPolicyIgnore    = v1alpha1.AdoptionPolicyIgnore

	ReconcilePolicyOnObjectChange            = v1alpha1.ReconcilePolicyOnObjectChange
	ReconcilePolicyOncePerManifest           = v1alpha1.ReconcilePolicyOncePerManifest
	ReconcilePolicyOnObjectOrComponentChange = v1alpha1.ReconcilePolicyOnObjectOrComponentChange
	ReconcilePolicyOnce                      = v1alpha1.ReconcilePolicyOnce

	UpdatePolicyReplace             = v1alpha1.UpdatePolicyReplace
	UpdatePolicySsaMerge            = v1alpha1.UpdatePolicySsaMerge
	UpdatePolicySsaOverride         = v1alpha1.UpdatePolicySsaOverride
	UpdatePolicyRecreate            = v1alpha1.UpdatePolicyRecreate
	UpdatePolicyRecreateOnImmutable = v1alpha1.UpdatePolicyRecreateOnImmutable

	DeletePolicyDelete         = v1alpha1.DeletePolicyDelete
	DeletePolicyOrphan         = v1alpha1.DeletePolicyOrphan
	DeletePolicyOrphanOnApply  = v1alpha1.DeletePolicyOrphanOnApply
	DeletePolicyOrphanOnDelete = v1alpha1.DeletePolicyOrphanOnDelete

	DriftPolicyRepair = v1alpha1.DriftPolicyRepair
	DriftPolicyReport = v1alpha1.DriftPolicyReport
	DriftPolicyIgnore = v1alpha1.DriftPolicyIgnore

	MissingNamespacesPolicyCreate      = v1alpha1.MissingNamespacesPolicyCreate
	MissingNamespacesPolicyDoNotCreate = v1alpha1.MissingNamespacesPolicyDoNotCreate
)

// WaitReason classifies a Wait.
type WaitReason = plan.WaitReason

// The reasons of waiting.
const (
	WaitReady         = plan.WaitReady
	WaitFailed        = plan.WaitFailed
	WaitOrder         = plan.WaitOrder
	WaitGone          = plan.WaitGone
	WaitType          = plan.WaitType
	WaitUnknown       = plan.WaitUnknown
	WaitForbidden     = plan.WaitForbidden
	WaitOwner         = plan.WaitOwner
	WaitBlocked       = plan.WaitBlocked
	WaitError         = plan.WaitError
	WaitConflict      = plan.WaitConflict
	WaitNamespaceGone = plan.WaitNamespaceGone
)

// ParseDriftPolicy reads the value of an annotation, in kebab-case or CamelCase.
// The error lists the values that there are.
func ParseDriftPolicy(value string) (DriftPolicy, error) { return policy.ParseDrift(value) }
