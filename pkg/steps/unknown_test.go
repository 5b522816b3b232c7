// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/steps"
)

func TestALockKeepsStatusFieldsThatTheTypeLacks(t *testing.T) {
	c, b := changed(t, "newer.test.corbel.run", func(crd *apiextensionsv1.CustomResourceDefinition) {
		status(crd)["extra"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	gvk, err := c.GroupVersionKindFor(b)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(b.Namespace)
	u.SetName(b.Name)
	theirs := client.RawPatch(types.MergePatchType, []byte(`{"status":{"extra":"theirs","phase":"Old","bucketName":"old"}}`))
	if err := c.Status().Patch(t.Context(), u, theirs); err != nil {
		t.Fatal(err)
	}
	want := func(when, phase, name string) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedMap(u.Object, "status")
		delete(got, "steps")
		if want := fmt.Sprint(map[string]any{"extra": "theirs", "phase": phase, "bucketName": name}); fmt.Sprint(got) != want {
			t.Errorf("%s the status is %v, want %s", when, got, want)
		}
	}
	b = read(t, c)
	b.Status.Phase = "Set before the lock"
	err = steps.NewLock(b, c, step).Execute(t.Context(), func(s steps.Condition) (steps.Condition, error) {
		want("while the task runs", "Set before the lock", "old")
		b.Status.BucketName = "new"
		s.Status = steps.ConditionCreated
		return s, nil
	})
	if err != nil {
		t.Error(err)
	}
	want("afterwards", "Set before the lock", "new")
}

func TestWhatWasRemovedBeforeTheLockIsRemoved(t *testing.T) {
	s := newStory(t)
	s.interfere(func(b *Bucket) { b.Status.Phase, b.Status.BucketName = "Old", "old" }, true)
	b := s.bucket()
	b.Status.Phase = ""
	err := steps.NewLock(b, s.client, step).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
		b.Status.BucketName = ""
		c.Status = steps.ConditionCreated
		return c, nil
	})
	if after := s.bucket().Status; err != nil || after.Phase != "" || after.BucketName != "" || !after.Steps.TypeHasStatus(step, steps.ConditionCreated) {
		t.Errorf("error %v, %+v", err, after)
	}
}
