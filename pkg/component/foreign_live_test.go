// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

func TestAnIgnoredObjectThatGoesAwayIsCreatedAtOnce(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyIgnore)})
	theirs := &corev1.ConfigMap{ObjectMeta: b.object("a")}
	b.check(b.client.Create(t.Context(), theirs))
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	if recorded := b.get().Status.Inventory.Items; len(theirs.Data) > 0 || len(recorded) > 0 {
		t.Errorf("it has %v, and on record is %v", theirs.Data, recorded)
	}
	b.check(b.client.Delete(t.Context(), theirs))
	b.expectRequeue("the end of the config map")
	b.until(component.StateReady)
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
}

// cronJob returns an instance of a type that another client makes.
func cronJob(b *bed) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: b.object("foreign"),
		Spec: batchv1.CronJobSpec{Schedule: "@yearly", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}}}},
	}
}

func TestTheEndOfForeignInstancesRequeuesTheDeletionThatTheyBlock(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{
		TypeSpec: component.TypeSpec{AdditionalManagedTypes: []v1alpha1.TypeInfo{{Group: "batch", Kind: "CronJob"}}},
		Values:   map[string]string{"a": "1"},
	})
	b.until(component.StateReady)
	foreign := cronJob(b)
	b.check(b.client.Create(t.Context(), foreign))
	b.check(b.client.Delete(t.Context(), b.get()))
	b.expect(component.StateDeleting, v1alpha1.ReasonDeletionBlocked)
	b.expectRequeue("the start of the watch")
	b.expect(component.StateDeleting, v1alpha1.ReasonDeletionBlocked)
	b.check(b.client.Delete(t.Context(), foreign))
	b.expectRequeue("the end of the cron job")
	b.untilGone()
}
