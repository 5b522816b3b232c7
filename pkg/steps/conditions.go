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

// TypeHasStatus tells whether the step has the status. A step without a condition has none.
func (c Conditions) TypeHasStatus(conditionType ConditionType, status ConditionStatus) bool {
	found := c.FindType(conditionType)
	return found != nil && found.Status == status
}

// AnyWithStatus tells whether any of the conditions has the status.
func (c Conditions) AnyWithStatus(status ConditionStatus) bool { return c.FindStatus(status) != nil }

// StatusIsOneOf tells whether the condition has one of the statuses.
func (c *Condition) StatusIsOneOf(statuses ...ConditionStatus) bool {
	return c != nil && slices.Contains(statuses, c.Status)
}

// SetCondition adds the condition or replaces the one of the same type.
//
// The key of an attempt that ended in Error stays as long as the status is Error.
//
// The time of the last transition is now if the status is another one than before,
// unless the caller set a later time than the stored one; else it stays. A reason that
// is too long is cut. Errors: NotInitializedConditionsErr if there are no conditions to
// add to (a nil pointer), and what the API server would refuse: a type or status
// that is empty, too long or of the wrong form.
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
	c.put(newCondition)
	return nil
}

// RemoveConditionWith removes the condition of the type, and tells whether there was one.
func (c *Conditions) RemoveConditionWith(conditionType ConditionType) (removed bool) {
	if c == nil || c.FindType(conditionType) == nil {
		return false
	}
	// Not in place: the old array may be shared with a copy of the object.
	rest := make(Conditions, 0, len(*c)-1)
	for _, condition := range *c {
		if condition.Type != conditionType {
			rest = append(rest, condition)
		}
	}
	*c = rest
	return true
}

func (c Conditions) find(match func(Condition) bool) *Condition {
	if i := slices.IndexFunc(c, match); i >= 0 {
		return c[i].DeepCopy()
	}
	return nil
}

// put replaces the condition of the type, or appends it. The array is a new one,
// because the old one may be shared with a copy of the object.
func (c *Conditions) put(condition Condition) {
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

// boundedReason cuts what the API server would refuse.
func boundedReason(reason string) string {
	characters := []rune(reason) // also makes it valid UTF-8
	if len(characters) <= maxReason {
		return string(characters)
	}
	return string(characters[:maxReason-1]) + ellipsis
}
