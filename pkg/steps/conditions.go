// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names a step. It has the form of a label key: letters, digits,
// '-', '_' and '.', and before it possibly a domain and a slash; at most 316 characters.
type ConditionType string

// ConditionStatus is the state of a step. The constants are the usual ones; further ones may have
// at most 128 characters.
type ConditionStatus string

const (
	// ConditionInitialized is the status of a step for which nothing was done yet.
	ConditionInitialized ConditionStatus = "Initialized"
	// ConditionCompleted means that the step has come to its end, and nothing but its
	// termination is left to do.
	ConditionCompleted ConditionStatus = "Completed"
	// ConditionCreated means that the first part is done, such as the creation of
	// something outside the cluster, and more reconciles are needed.
	ConditionCreated ConditionStatus = "Created"
	// ConditionTerminating means that the result of the step is being removed, which takes more
	// than one reconcile.
	ConditionTerminating ConditionStatus = "Terminating"
	// ConditionTerminated means that the result of the step is gone.
	ConditionTerminated ConditionStatus = "Terminated"
	// ConditionError means that the step failed and a user has to look at it; the
	// reason says why. Transient failures do not belong here, see [Lock.Execute].
	ConditionError ConditionStatus = "Error"
	// ConditionLocked means that a [Lock] is at work on the step.
	ConditionLocked ConditionStatus = "Locked"
)

// Limits of the API server, in characters.
const (
	// Unit: characters
	// Limit: the type of a step.
	maxType   = 316
	maxStatus = 128
	// Unit: characters
	// Limit: the reason of a step.
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

	// Status is the state of the step.
	// +required
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=128
	Status ConditionStatus `json:"status"`

	// LastTransitionTime is the time of the last change of the status. SetCondition sets it.
	// +required
	// +kubebuilder:validation:Required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// Reason explains the status, such as the text of an error. Longer ones are cut at 1024
	// characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	Reason string `json:"reason,omitempty"`

	// AttemptKey is the idempotency key of an attempt that ended in Error: the resource that it
	// asked for may exist, so the next attempt has the same key. A Lock writes it; it goes when the
	// step gets another status.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AttemptKey string `json:"attemptKey,omitempty"`

	// Lock is the record of the lock that holds the step. It is there while a Lock is at work, and written by it alone.
	// +optional
	Lock *LockInfo `json:"lock,omitempty"`
}

// LockInfo is the record of a lock that is held: all that another process needs to
// take it over.
type LockInfo struct {
	// Holder names the holder for users, usually the name of a pod.
	Holder string `json:"holder"`
	// Process is a random text that the holder's process made when it started.
	Process string `json:"process"`
	// Token is a random text that belongs to this one acquisition.
	Token string `json:"token"`
	// AcquiredAt is when the lease started, by the holder's clock.
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

// Conditions are the steps of an object. Methods that find return copies: a change
// takes effect with [Conditions.SetCondition], and is durable when the object was written.
type Conditions []Condition

// FindOrInitializeFor returns a copy of the step's condition, or a new one with
// status Initialized, which is not added to the conditions.
func (c Conditions) FindOrInitializeFor(ct ConditionType) Condition {
	if found := c.FindType(ct); found != nil {
		return *found
	}
	return Condition{Type: ct, Status: ConditionInitialized}
}

// FindStatus returns a copy of the first condition with the status, or nil.
func (c Conditions) FindStatus(conditionStatus ConditionStatus) *Condition {
	return c.find(func(condition Condition) bool { return condition.Status == conditionStatus })
}

// FindType returns a copy of the step's condition, or nil.
func (c Conditions) FindType(conditionType ConditionType) *Condition {
	return c.find(func(condition Condition) bool { return condition.Type == conditionType })
}

// TypeHasStatus reports whether the step has the status. A step without a condition has none.
func (c Conditions) TypeHasStatus(conditionType ConditionType, status ConditionStatus) bool {
	found := c.FindType(conditionType)
	return found != nil && found.Status == status
}

// AnyWithStatus reports whether any of the conditions has the status.
func (c Conditions) AnyWithStatus(status ConditionStatus) bool { return c.FindStatus(status) != nil }

// StatusIsOneOf reports whether the condition has one of the statuses.
func (c *Condition) StatusIsOneOf(statuses ...ConditionStatus) bool {
	return c != nil && slices.Contains(statuses, c.Status)
}

// SetCondition adds the condition or replaces the one of the same type.
//
// The key of an attempt that ended in Error stays as long as the status is Error.
//
// The time of the last transition is now if the status is another one than before, unless the
// caller set a later time than the stored one; else it stays. A reason that is too long is cut.
// Errors: NotInitializedConditionsErr if there are no conditions to add to (a nil pointer), and
// errors for values that the API server would refuse: a type or status that is empty, too long or
// of the wrong form.
func (c *Conditions) SetCondition(newCondition Condition) error {
	if c == nil {
		return NotInitializedConditionsErr
	}
	if err := validate(newCondition); err != nil {
		return err
	}
	old := c.FindType(newCondition.Type)
	newCondition.LastTransitionTime = transition(old, newCondition, time.Now())
	if old != nil && old.Status == ConditionError && newCondition.AttemptKey == "" {
		newCondition.AttemptKey = old.AttemptKey
	}
	c.set(newCondition)
	return nil
}

// RemoveConditionWith removes the condition of the type, and reports whether there was one.
func (c *Conditions) RemoveConditionWith(conditionType ConditionType) (removed bool) {
	if c == nil || c.FindType(conditionType) == nil {
		return false
	}
	// Not in place: the old array may be shared with a copy of the object.
	*c = slices.DeleteFunc(slices.Clone(*c), func(condition Condition) bool { return condition.Type == conditionType })
	return true
}

func (c Conditions) find(match func(Condition) bool) *Condition {
	if i := slices.IndexFunc(c, match); i >= 0 {
		return c[i].DeepCopy()
	}
	return nil
}

// set replaces the condition of the type, or appends it. The array is a new one,
// because the old one may be shared with a copy of the object.
func (c *Conditions) set(condition Condition) {
	condition.Reason = boundedReason(condition.Reason)
	if condition.Status != ConditionLocked {
		condition.Lock = nil
	}
	if condition.Status != ConditionError {
		condition.AttemptKey = ""
	}
	list := make(Conditions, 0, len(*c)+1)
	placed := false
	for _, old := range *c {
		switch {
		case old.Type != condition.Type:
			list = append(list, old)
		case !placed:
			list, placed = append(list, *condition.DeepCopy()), true
		}
	}
	if !placed {
		list = append(list, *condition.DeepCopy())
	}
	*c = list
}

// transition is the time to store with the condition. The serialised form knows no
// fractions of a second.
func transition(old *Condition, condition Condition, now time.Time) metav1.Time {
	given := condition.LastTransitionTime
	switch {
	case old == nil && !given.IsZero():
		return given
	case old == nil:
	case old.Status == condition.Status && !old.LastTransitionTime.IsZero():
		return old.LastTransitionTime
	case given.After(old.LastTransitionTime.Time):
		return given
	}
	return metav1.NewTime(now.UTC().Truncate(time.Second))
}

var typePattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

func validate(condition Condition) error {
	if err := validateType(condition.Type); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(string(condition.Status)); n == 0 || n > maxStatus {
		return fmt.Errorf("condition %s: its status has %d characters, it must have 1 to %d", condition.Type, n, maxStatus)
	}
	return nil
}

func validateType(conditionType ConditionType) error {
	if len(conditionType) > maxType {
		return fmt.Errorf("a condition's type has %d characters, at most %d are allowed", len(conditionType), maxType)
	}
	if !typePattern.MatchString(string(conditionType)) {
		return fmt.Errorf("condition %q: its type must be letters, digits, '-', '_' and '.', after a domain and a slash if need be, such as example.com/Bucket", conditionType)
	}
	return nil
}

const ellipsis = "…"

// boundedReason cuts a reason that the API server would refuse.
func boundedReason(reason string) string {
	characters := []rune(reason) // also makes it valid UTF-8
	if len(characters) <= maxReason {
		return string(characters)
	}
	return string(characters[:maxReason-1]) + ellipsis
}

// DeepCopy returns a copy that shares nothing with the condition.
func (c *Condition) DeepCopy() *Condition {
	if c == nil {
		return nil
	}
	out := new(Condition)
	c.DeepCopyInto(out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the condition.
func (c *Condition) DeepCopyInto(out *Condition) {
	*out = *c
	c.LastTransitionTime.DeepCopyInto(&out.LastTransitionTime)
	out.Lock = c.Lock.DeepCopy()
}

// DeepCopy returns a copy that shares nothing with the conditions. A copy of nil is nil.
func (c *Conditions) DeepCopy() Conditions {
	if c == nil {
		return nil
	}
	var out Conditions
	c.DeepCopyInto(&out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the conditions, whatever it held before.
func (c *Conditions) DeepCopyInto(out *Conditions) {
	if *c == nil {
		*out = nil
		return
	}
	list := make(Conditions, len(*c))
	for i := range *c {
		(*c)[i].DeepCopyInto(&list[i])
	}
	*out = list
}

// DeepCopy returns a copy that shares nothing with the record.
func (c *LockInfo) DeepCopy() *LockInfo {
	if c == nil {
		return nil
	}
	out := new(LockInfo)
	c.DeepCopyInto(out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the record.
func (c *LockInfo) DeepCopyInto(out *LockInfo) {
	*out = *c
	c.AcquiredAt.DeepCopyInto(&out.AcquiredAt)
	out.PreviousTransitionTime = c.PreviousTransitionTime.DeepCopy()
}

// ToMeta returns the steps as conditions with the statuses that other tools know, for a summary
// such as Ready: a step that is Completed is True; a step that is Terminated or has status Error is
// False; every other step is Unknown, because its end is still to come. The reason is the status,
// the message the reason. The view may be shown in status.conditions, with conditions.Set, which
// makes its form valid.
func (c Conditions) ToMeta(generation int64) []metav1.Condition {
	view := make([]metav1.Condition, 0, len(c))
	for _, condition := range c {
		view = append(view, metav1.Condition{
			Type: string(condition.Type), Status: metaStatus(condition.Status), ObservedGeneration: generation,
			LastTransitionTime: condition.LastTransitionTime, Reason: string(condition.Status), Message: condition.Reason,
		})
	}
	return view
}

func metaStatus(status ConditionStatus) metav1.ConditionStatus {
	switch status {
	case ConditionCompleted:
		return metav1.ConditionTrue
	case ConditionTerminated, ConditionError:
		return metav1.ConditionFalse
	default:
		return metav1.ConditionUnknown
	}
}
