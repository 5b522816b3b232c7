// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionType names a step. It has the form of a label key: letters, digits,
// '-', '_' and '.', and before it possibly a domain and a slash; at most 316 characters.
type ConditionType string

// ConditionStatus says where a step is. The constants are the usual ones; others may be
// added, of at most 128 characters.
type ConditionStatus string

const (
	// ConditionInitialized is the status of a step for which nothing was done yet.
	ConditionInitialized ConditionStatus = "Initialized"
	// ConditionCompleted means that the step has come to its end, and nothing but its
	// termination is left to do.
	ConditionCompleted ConditionStatus = "Completed"
	// ConditionCreated means that the first part is done, such as the creation of
	// something outside the cluster, and more passes are needed.
	ConditionCreated ConditionStatus = "Created"
	// ConditionTerminating means that what the step made is being removed, which
	// takes more than one pass.
	ConditionTerminating ConditionStatus = "Terminating"
	// ConditionTerminated means that what the step made is gone.
	ConditionTerminated ConditionStatus = "Terminated"
	// ConditionError means that the step failed and somebody has to look at it; the
	// reason says why. Failures that pass by themselves do not belong here, see [Lock.Execute].
	ConditionError ConditionStatus = "Error"
	// ConditionLocked means that a [Lock] is at work on the step.
	ConditionLocked ConditionStatus = "Locked"
)

// Limits of the API server, in characters.
const (
	maxType   = 316
	maxStatus = 128
	maxReason = 1024
)

// Condition is the state of one step.
type Condition struct {
	// Type names the step. It is unique among the conditions of an object.
	// +required
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	Type ConditionType `json:"type"`

	// Status says where the step is.
	// +required
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=128
	Status ConditionStatus `json:"status"`

	// LastTransitionTime is when the status became what it is. SetCondition sets it.
	// +required
	// +kubebuilder:validation:Required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// Reason says more about the status, such as the text of an error. Longer ones
	// are cut at 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	Reason string `json:"reason,omitempty"`

	// AttemptKey is the idempotency key of an attempt that ended in Error: what it asked
	// for may exist, so the next attempt has the same key. A Lock writes it; it goes
	// when the step gets another status.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AttemptKey string `json:"attemptKey,omitempty"`

	// Lock is who holds the step. It is there while a Lock is at work, and written by it alone.
	// +optional
	Lock *LockInfo `json:"lock,omitempty"`
}

// LockInfo is the record of a lock that is held: all that another process needs to
// take it over.
type LockInfo struct {
	// Holder is whom people may look for, usually the name of a pod.
	Holder string `json:"holder"`
	// Process is a random text that the holder's process made when it started.
	Process string `json:"process"`
	// Token is a random text that belongs to this one acquisition.
	Token string `json:"token"`
	// AcquiredAt is when the lease began, by the holder's clock.
	AcquiredAt metav1.MicroTime `json:"acquiredAt"`
	// Lease is how long the lock is the holder's.
	Lease metav1.Duration `json:"lease"`
	// AttemptKey is the idempotency key that the task gives to external systems.
	// +optional
	AttemptKey string `json:"attemptKey,omitempty"`
	// Previous is the status before the lock.
	Previous ConditionStatus `json:"previous"`
	// PreviousReason is the reason before the lock.
	// +optional
	PreviousReason string `json:"previousReason,omitempty"`
	// PreviousTransitionTime is the time of the last transition before the lock.
	// +optional
	PreviousTransitionTime *metav1.Time `json:"previousTransitionTime,omitempty"`
}
