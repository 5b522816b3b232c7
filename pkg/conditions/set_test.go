// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/test/check"
)

// object is a config map with conditions beside it.
func object(generation int64, list ...metav1.Condition) conditions.Setter {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", Generation: generation}}
	return conditions.For(cm, &list)
}

func types(obj conditions.Getter) []string {
	var names []string
	for _, c := range obj.GetConditions() {
		names = append(names, c.Type)
	}
	return names
}

func TestSetStampsGenerationAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		time.Sleep(678 * time.Millisecond)
		obj := object(7)
		conditions.MarkTrue(obj, "Ready", "Fine", "%d of %d", 2, 2)
		want := []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", Message: "2 of 2", ObservedGeneration: 7,
			LastTransitionTime: metav1.NewTime(start),
		}}
		check.Equal(t, want, obj.GetConditions())
	})
}

func TestTransitionTimeFollowsTheStatusOnly(t *testing.T) {
	for _, tc := range []struct {
		name  string
		again func(conditions.Setter)
		want  time.Duration
	}{
		{"another message is no transition", func(o conditions.Setter) { conditions.MarkTrue(o, "Ready", "Fine", "new") }, 0},
		{"another reason is no transition", func(o conditions.Setter) { conditions.MarkTrue(o, "Ready", "Better", "old") }, 0},
		{"another status is one", func(o conditions.Setter) { conditions.MarkFalse(o, "Ready", "Fine", "old") }, time.Hour},
		{"unknown is a status", func(o conditions.Setter) { conditions.MarkUnknown(o, "Ready", "Fine", "old") }, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, obj := time.Now(), object(1)
				conditions.MarkTrue(obj, "Ready", "Fine", "old")
				time.Sleep(time.Hour)
				tc.again(obj)
				if got := conditions.Get(obj, "Ready").LastTransitionTime; got.Sub(start) != tc.want {
					t.Errorf("transition after %s, want %s", got.Sub(start), tc.want)
				}
			})
		})
	}
}

func TestReconcilingAndStalledExcludeEachOther(t *testing.T) {
	obj := object(1)
	conditions.MarkReconciling(obj, "Working", "")
	conditions.MarkStalled(obj, "Invalid", "")
	if conditions.Has(obj, "Reconciling") || !conditions.IsStalled(obj) {
		t.Errorf("after MarkStalled: %v", types(obj))
	}
	conditions.MarkReconciling(obj, "Working", "")
	if conditions.Has(obj, "Stalled") || !conditions.IsReconciling(obj) {
		t.Errorf("after MarkReconciling: %v", types(obj))
	}
}

func TestSetDoesNotChangeCopiesOfTheSlice(t *testing.T) {
	obj := object(1)
	conditions.MarkTrue(obj, "Ready", "Fine", "")
	before := obj.GetConditions()
	conditions.MarkFalse(obj, "Ready", "Broken", "")
	check.SameNamed(t, "the slice that was read before was changed", metav1.ConditionTrue, before[0].Status)
}

func TestMessagesAreBounded(t *testing.T) {
	for _, tc := range []struct{ name, message string }{
		{"at the limit", strings.Repeat("x", conditions.MaxMessage)},
		{"one byte too long", strings.Repeat("x", conditions.MaxMessage+1)},
		{"the cut falls into a character", "x" + strings.Repeat("ü", conditions.MaxMessage)},
		{"four-byte characters", strings.Repeat("🧱", conditions.MaxMessage)},
		{"not UTF-8", "a\xffb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			obj := object(1)
			conditions.Set(obj, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Message: tc.message})
			got := conditions.Get(obj, "Ready").Message
			if len(got) > conditions.MaxMessage || !utf8.ValidString(got) {
				t.Errorf("%d bytes, valid %t", len(got), utf8.ValidString(got))
			}
			if len(tc.message) <= conditions.MaxMessage && utf8.ValidString(tc.message) && got != tc.message {
				t.Errorf("changed: %q", got)
			}
			if len(tc.message) > conditions.MaxMessage && !strings.HasSuffix(got, "…") {
				t.Errorf("the cut does not show: %q", got[len(got)-8:])
			}
		})
	}
}

func TestReasonsAreMadeAcceptable(t *testing.T) {
	for reason, want := range map[string]string{
		"":                 "Unspecified",
		"Ready":            "Ready",
		"not found":        "NotFound",
		"lower":            "Lower",
		"1st":              "St",
		"HTTP_404:gone":    "HTTP_404:gone",
		"Ends_With:":       "Ends_With",
		"??":               "Unspecified",
		"a-b/c":            "ABC",
		"Über":             "Ber",
		"OwnerConflict500": "OwnerConflict500",
	} {
		obj := object(1)
		conditions.Set(obj, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: reason})
		check.SameNamed(t, reason, want, conditions.Get(obj, "Ready").Reason)
	}
}

func TestAnAbsentConditionIsNeitherTrueNorFalse(t *testing.T) {
	obj := object(1)
	if conditions.IsTrue(obj, "Ready") || conditions.IsFalse(obj, "Ready") || conditions.Has(obj, "Ready") {
		t.Error("an absent condition is there")
	}
	conditions.MarkTrue(obj, "Ready", "Fine", "")
	if !conditions.IsReady(obj) {
		t.Error("Ready alone is ready")
	}
	conditions.MarkReconciling(obj, "Working", "")
	if conditions.IsReady(obj) {
		t.Error("ready although work goes on")
	}
}

func TestConditionsOfOtherWritersAreCompleted(t *testing.T) {
	early := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	later := early.Add(time.Hour + time.Millisecond)
	whole := metav1.Condition{Type: "example.com/Done", Status: metav1.ConditionTrue, Reason: "allDone", Message: "ok", LastTransitionTime: metav1.NewTime(early), ObservedGeneration: 3}
	for name, test := range map[string]struct{ change, want func(*metav1.Condition) }{
		"a whole one stays":             {},
		"a reason is missing":           {func(c *metav1.Condition) { c.Reason = "" }, func(c *metav1.Condition) { c.Reason = "Unknown" }},
		"a reason is a sentence":        {func(c *metav1.Condition) { c.Reason = "it works!" }, func(c *metav1.Condition) { c.Reason = "ItWorks" }},
		"a reason is too long":          {func(c *metav1.Condition) { c.Reason = strings.Repeat("A", 2000) }, func(c *metav1.Condition) { c.Reason = strings.Repeat("A", 1024) }},
		"a status is in lower case":     {func(c *metav1.Condition) { c.Status = "false" }, func(c *metav1.Condition) { c.Status = metav1.ConditionFalse }},
		"a status is another word":      {func(c *metav1.Condition) { c.Status = "yes" }, func(c *metav1.Condition) { c.Status = metav1.ConditionUnknown }},
		"a type is missing":             {func(c *metav1.Condition) { c.Type = "" }, func(c *metav1.Condition) { c.Type = "Unknown" }},
		"a type is a sentence":          {func(c *metav1.Condition) { c.Type = "(all done)" }, func(c *metav1.Condition) { c.Type = "all-done" }},
		"a time is missing":             {func(c *metav1.Condition) { c.LastTransitionTime = metav1.Time{} }, func(c *metav1.Condition) { c.LastTransitionTime = metav1.NewTime(later.Truncate(time.Second)) }},
		"a generation is negative":      {func(c *metav1.Condition) { c.ObservedGeneration = -1 }, func(c *metav1.Condition) { c.ObservedGeneration = 0 }},
		"a message is longer than ours": {func(c *metav1.Condition) { c.Message = strings.Repeat("m", 32768) }, func(c *metav1.Condition) { c.Message = strings.Repeat("m", 32768) }},
	} {
		given, want := whole, whole
		if test.change != nil {
			test.change(&given)
			test.want(&want)
		}
		check.EqualNamed(t, name, want, conditions.Complete(given, later))
	}
	long := whole
	long.Message = strings.Repeat("m", 32769)
	if got := conditions.Complete(long, later).Message; len(got) != conditions.MaxMessage {
		t.Errorf("a message that the server refuses has %d bytes", len(got))
	}
}

func TestDelete(t *testing.T) {
	obj := object(1)
	conditions.MarkTrue(obj, "A", "R", "")
	conditions.MarkTrue(obj, "B", "R", "")
	conditions.Delete(obj, "B", "C")
	check.Equal(t, []string{"A"}, types(obj))
}

func TestAdapterGivesTheObjectBack(t *testing.T) {
	cm := &corev1.ConfigMap{}
	obj := conditions.For(cm, new([]metav1.Condition))
	if conditions.ObjectOf(obj) != client.Object(cm) || conditions.ObjectOf(cm) != client.Object(cm) {
		t.Error("ObjectOf does not return the object")
	}
	if _, ok := obj.DeepCopyObject().(*corev1.ConfigMap); !ok {
		t.Errorf("the copy is a %T", obj.DeepCopyObject())
	}
}
