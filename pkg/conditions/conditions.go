// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Getter is an object with conditions.
type Getter interface {
	client.Object
	// GetConditions returns the conditions. The caller must not change them.
	GetConditions() []metav1.Condition
}

// Setter is an object with conditions that can be replaced.
type Setter interface {
	Getter
	// SetConditions replaces all conditions.
	SetConditions(conditions []metav1.Condition)
}

// For makes a Setter of an object and the slice that its conditions are in.
// The slice is usually a field of the object's status.
func For(obj client.Object, conditions *[]metav1.Condition) Setter {
	return &adapter{Object: obj, conditions: conditions}
}

// ObjectOf returns the object itself, without the adapter that For put around
// it. Only the object itself can be sent to a server.
func ObjectOf(obj client.Object) client.Object {
	if a, ok := obj.(*adapter); ok {
		return a.Object
	}
	return obj
}

// adapter embeds the object, so that it has its name and metadata.
type adapter struct {
	client.Object
	conditions *[]metav1.Condition
}

func (a *adapter) GetConditions() []metav1.Condition { return *a.conditions }

func (a *adapter) SetConditions(conditions []metav1.Condition) { *a.conditions = conditions }

// DeepCopyObject returns a copy of the object itself: a copy of the adapter
// would still point to the conditions of the original.
func (a *adapter) DeepCopyObject() runtime.Object { return a.Object.DeepCopyObject() }

// Get returns a copy of the condition, or nil if the object does not have it.
func Get(obj Getter, conditionType string) *metav1.Condition {
	if condition := apimeta.FindStatusCondition(obj.GetConditions(), conditionType); condition != nil {
		return new(*condition)
	}
	return nil
}

// Has reports whether the object has the condition, whatever its status.
func Has(obj Getter, conditionType string) bool { return Get(obj, conditionType) != nil }

// IsTrue reports whether the condition is there and True.
func IsTrue(obj Getter, conditionType string) bool {
	return apimeta.IsStatusConditionTrue(obj.GetConditions(), conditionType)
}

// IsFalse reports whether the condition is there and False.
func IsFalse(obj Getter, conditionType string) bool {
	return apimeta.IsStatusConditionFalse(obj.GetConditions(), conditionType)
}

// IsReady reports whether the object is Ready, and neither Reconciling nor Stalled.
func IsReady(obj Getter) bool {
	return IsTrue(obj, v1alpha1.ConditionReady) && !IsReconciling(obj) && !IsStalled(obj)
}

// IsReconciling reports whether work on the object goes on.
func IsReconciling(obj Getter) bool { return IsTrue(obj, v1alpha1.ConditionReconciling) }

// IsStalled reports whether no progress is possible until a user changes something.
func IsStalled(obj Getter) bool { return IsTrue(obj, v1alpha1.ConditionStalled) }

// Set adds the condition or replaces the one of the same type.
//
// The generation of the object is stamped as observedGeneration. The time of the last transition is
// now if the status is another one than before, else it stays. A message longer than [MaxMessage]
// is cut; a reason that the API server would refuse is made acceptable, because a status that
// cannot be written is of no use.
func Set(obj Setter, condition metav1.Condition) {
	// The serialised form knows no fractions of a second: with them, an object
	// that was never written would differ from the same object after reading it.
	transition := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	if old := Get(obj, condition.Type); old != nil && old.Status == condition.Status && !old.LastTransitionTime.IsZero() {
		transition = old.LastTransitionTime
	}
	condition.LastTransitionTime = transition
	condition.ObservedGeneration = obj.GetGeneration()
	condition.Reason = validReason(condition.Reason)
	condition.Message = boundedMessage(condition.Message)

	// The old slice may be shared with a copy of the object, so it is not changed in place.
	conditions := without(obj.GetConditions(), condition.Type)
	conditions = append(conditions, condition)
	sortConditions(conditions)
	obj.SetConditions(conditions)
}

// MarkTrue sets the condition to True.
func MarkTrue(obj Setter, conditionType, reason, format string, args ...any) {
	Set(obj, newCondition(conditionType, metav1.ConditionTrue, reason, fmt.Sprintf(format, args...)))
}

// MarkFalse sets the condition to False.
func MarkFalse(obj Setter, conditionType, reason, format string, args ...any) {
	Set(obj, newCondition(conditionType, metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)))
}

// MarkUnknown sets the condition to Unknown.
func MarkUnknown(obj Setter, conditionType, reason, format string, args ...any) {
	Set(obj, newCondition(conditionType, metav1.ConditionUnknown, reason, fmt.Sprintf(format, args...)))
}

// MarkReconciling sets Reconciling to True and removes Stalled.
func MarkReconciling(obj Setter, reason, format string, args ...any) {
	Delete(obj, v1alpha1.ConditionStalled)
	MarkTrue(obj, v1alpha1.ConditionReconciling, reason, format, args...)
}

// MarkStalled sets Stalled to True and removes Reconciling.
func MarkStalled(obj Setter, reason, format string, args ...any) {
	Delete(obj, v1alpha1.ConditionReconciling)
	MarkTrue(obj, v1alpha1.ConditionStalled, reason, format, args...)
}

// Delete removes the conditions of the given types. Types that the object does
// not have are ignored.
func Delete(obj Setter, conditionTypes ...string) {
	conditions := obj.GetConditions()
	if !slices.ContainsFunc(conditionTypes, func(t string) bool { return apimeta.FindStatusCondition(conditions, t) != nil }) {
		return
	}
	obj.SetConditions(without(conditions, conditionTypes...))
}

func newCondition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// without returns a new slice that lacks the conditions of the given types.
func without(conditions []metav1.Condition, conditionTypes ...string) []metav1.Condition {
	rest := make([]metav1.Condition, 0, len(conditions)+1)
	for _, condition := range conditions {
		if !slices.Contains(conditionTypes, condition.Type) {
			rest = append(rest, condition)
		}
	}
	return rest
}

// Merge unites conditions that two sides changed since both saw base: ours, and theirs as the
// server has them now. For the owned types our side is right, including their absence. Of all other
// types we keep conditions that only we changed, and their side is right about everything that they
// changed. The arguments are not changed.
func Merge(base, ours, theirs []metav1.Condition, owned []string) []metav1.Condition {
	var merged []metav1.Condition
	var seen []string
	for _, condition := range slices.Concat(ours, theirs) {
		conditionType := condition.Type
		if slices.Contains(seen, conditionType) {
			continue
		}
		seen = append(seen, conditionType)
		our, their := apimeta.FindStatusCondition(ours, conditionType), apimeta.FindStatusCondition(theirs, conditionType)
		chosen := our
		if !slices.Contains(owned, conditionType) && !equality.Semantic.DeepEqual(their, apimeta.FindStatusCondition(base, conditionType)) {
			chosen = their
		}
		if chosen != nil {
			merged = append(merged, *chosen)
		}
	}
	sortConditions(merged)
	return merged
}

// The limits of the API server for conditions of the type metav1.Condition.
var (
	typePattern   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	outsideOfType = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

const (
	maxType          = 316
	maxServerMessage = 32768
)

// Complete returns the condition in a form that the API server accepts. Another client may have
// stored it before the server had a schema, and the server refuses a whole status because of one
// condition. A missing value becomes Unknown or now.
func Complete(condition metav1.Condition, now time.Time) metav1.Condition {
	if !typePattern.MatchString(condition.Type) || len(condition.Type) > maxType {
		short := condition.Type[:min(len(condition.Type), maxType)]
		condition.Type = cmp.Or(strings.Trim(outsideOfType.ReplaceAllString(short, "-"), "-"), string(metav1.ConditionUnknown))
	}
	status := metav1.ConditionUnknown
	for _, known := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		if strings.EqualFold(string(condition.Status), string(known)) {
			status = known
		}
	}
	condition.Status = status
	if condition.Reason == "" {
		condition.Reason = string(metav1.ConditionUnknown)
	}
	if !reasonPattern.MatchString(condition.Reason) || len(condition.Reason) > maxReason {
		condition.Reason = validReason(condition.Reason)
	}
	if utf8.RuneCountInString(condition.Message) > maxServerMessage {
		condition.Message = boundedMessage(condition.Message)
	}
	condition.ObservedGeneration = max(condition.ObservedGeneration, 0)
	if condition.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
	}
	return condition
}

// ranks put the conditions that people look for first on top.
var ranks = map[string]int{
	v1alpha1.ConditionReady:       -3,
	v1alpha1.ConditionReconciling: -2,
	v1alpha1.ConditionStalled:     -1,
}

// sortConditions orders Ready, Reconciling, Stalled, then the rest by name.
func sortConditions(conditions []metav1.Condition) {
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(ranks[a.Type], ranks[b.Type]), cmp.Compare(a.Type, b.Type))
	})
}

// MaxMessage is the greatest length of a message in bytes. Longer ones are cut
// and end with an ellipsis: a status is read by people, and it is written often.
//
// Unit: bytes
// Limit: the message of a condition; a longer one is cut.
const MaxMessage = 1024

const ellipsis = "…"

// unspecified stands for a reason that holds nothing acceptable.
const unspecified = "Unspecified"

// maxReason is the limit of the API server.
const maxReason = 1024

// boundedMessage cuts the message at a character, never inside one.
func boundedMessage(message string) string {
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	if len(message) <= MaxMessage {
		return message
	}
	cut := MaxMessage - len(ellipsis)
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + ellipsis
}

// validReason returns the reason as CamelCase that the API server accepts:
// letters, digits and inner underscores, commas and colons, a letter first.
// Words apart are joined: "not found" becomes "NotFound".
func validReason(reason string) string {
	var b strings.Builder
	capital := true
	for _, r := range reason {
		switch {
		case isLetter(r) && capital:
			b.WriteString(strings.ToUpper(string(r)))
			capital = false
		case isLetter(r), b.Len() > 0 && (isDigit(r) || strings.ContainsRune("_,:", r)):
			b.WriteRune(r)
			capital = false
		default:
			capital = true
		}
		if b.Len() == maxReason {
			break
		}
	}
	if valid := strings.TrimRight(b.String(), ",:"); valid != "" {
		return valid
	}
	return unspecified
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }
