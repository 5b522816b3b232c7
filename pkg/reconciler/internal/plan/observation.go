// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/report"
)

// Existence tells whether an object exists, as far as that is known.
type Existence int

const (
	// Unknown: the object could not be read. Nothing destructive may follow from it.
	Unknown Existence = iota
	// Absent: the server answered that the object does not exist.
	Absent
	// Present: the object was seen.
	Present
	// NotFetched: the object was not read, and nothing indicates that it exists. A desired object
	// may be created by a request that demands its absence; for everything else it is Unknown.
	NotFetched
)

// Finish is how the work of an object with a TTL ended, such as a Job with
// ttlSecondsAfterFinished: the cluster removes it some time after its end.
type Finish uint8

const (
	// FinishUnknown: the object has no TTL; or it is absent, and its deletion was not
	// watched.
	FinishUnknown Finish = iota
	// Unfinished: its work has not ended, or had not when it was deleted.
	Unfinished
	// FinishComplete: its work is done.
	FinishComplete
	// FinishFailed: its work has failed.
	FinishFailed
)

// Observation is the observed state of one object. The zero value is Unknown.
type Observation struct {
	Existence Existence
	// Finish holds for Present, and for Absent if a watch has seen the deletion of the
	// recorded object.
	Finish Finish
	// Message explains Unknown, in words for the user.
	Message string
	// NotServed is set with Unknown if the server does not serve the type.
	NotServed bool
	// Forbidden is set with Unknown if the user has no right to read the object.
	Forbidden bool

	// The rest holds for Present only.
	UID             types.UID
	ResourceVersion string
	Ownership       Ownership
	// Seal is the seal that the record of this very object has if it is the owner's: a keyed hash
	// over the owner, the key and the uid. It is empty if there is no key.
	Seal string
	// ObservedHash and AppliedHash are the hashes of the same names in the inventory item;
	// AppliedHash is empty if no manifest is known for the object, or if it was not
	// computed because ObservedHash is the recorded one.
	ObservedHash, AppliedHash string
	// EarlierAppliedHash is the AppliedHash in the version of the recorded one, if that is not the
	// present version.
	EarlierAppliedHash string
	// Drift tells how the object came to differ from the record; nil if it does not, or if that was
	// not looked for.
	Drift *report.Drift
	// Deferred: the object has changed since it was read last, and was not read again, because it
	// is edited all the time. AppliedHash is empty then, and Drift is the drift of the last read.
	// So neither drift nor its end is known.
	Deferred bool
	// Differs: at some path that the manifest sets, the object has another value. It is
	// computed only if it is not known of which manifest the object was made, because
	// the digest key is another one.
	Differs bool
	// Altered is the field of the same name in the inventory item; only the answer to a write has it.
	Altered string
	// Scaled is set if the number of replicas was set through the subresource scale.
	Scaled *Scaling
	// DeletionTimestamp is zero if the object is not being deleted.
	DeletionTimestamp time.Time
	Finalizers        []string
	// HasOwnerReferences: the object has ownerReferences.
	HasOwnerReferences bool
	// Reclaims: a write of the object takes over the fields of one-off managers, and it has such fields.
	Reclaims bool
	// Carried holds the fields that a PUT of the object has to carry over because a controller or
	// the server has set them, as a JSON object with these fields alone. It is empty if they are
	// not known.
	Carried string
	// Webhooks are the admission webhooks of a configuration that refuse requests if the server cannot call them, by name,
	// with their selectors in words. They are known of a configuration that was read, or written.
	Webhooks map[string]string
	// Automatic is the value of the annotation automatic of a namespace; for an absent namespace,
	// the value to write. An empty value proves nothing.
	Automatic string
	// Shared is the annotation of a definition that has the label of the types that all components of the reconciler share.
	Shared string
	// CreationTimestamp is the object's creation timestamp.
	CreationTimestamp time.Time
	Status            Status
}

// known reports whether there was an answer to whether the object exists.
func (o Observation) known() bool { return o.Existence == Absent || o.Existence == Present }

// Status is the readiness of an object.
type Status struct {
	Readiness Readiness
	// Message says why the object is not ready, such as "1 of 3 replicas ready".
	Message string
	// Outputs are the values of the outputs of the object, as package observe encodes them.
	Outputs string
}

// Readiness tells whether an object does its work.
type Readiness int

const (
	// NotReady: work on the object is in progress.
	NotReady Readiness = iota
	// Ready: the object does its work.
	Ready
	// Failed: the object reports a failure.
	Failed
	// ReadinessUnknown: the type declares status conditions, but the status is still
	// empty. The object counts as not ready for EmptyStatusGracePeriod after our write,
	// then as ready.
	ReadinessUnknown
)

// EmptyStatusGracePeriod is how long a written object with an empty status counts as not ready.
//
// Limit: the time after a write for which an object with an empty status is not ready.
const EmptyStatusGracePeriod = 5 * time.Second

// Scaling is a number of replicas that was set through the subresource scale.
type Scaling struct {
	// Path is where the object holds the number, such as spec.replicas.
	Path     string
	Replicas int64
	// Manager is the field manager that set it, and At when.
	Manager string
	At      time.Time
	// Autoscaler: the manager is an autoscaler, which sets the number again and again.
	Autoscaler bool
}
