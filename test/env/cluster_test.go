// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is far more than anything here takes on a machine that is not overloaded.
const patience = time.Minute

// A scene is a namespace in a whole cluster.
type scene struct {
	client.Client
	namespace string
}

func TestCluster(t *testing.T) {
	t.Parallel()
	e := New(t, Options{Cluster: true})
	for _, test := range []struct {
		name string
		play func(*testing.T, scene)
	}{
		{"a Job with pods that fail is Failed", jobFails},
		{"a claim is bound and its volume goes with it", claimIsBound},
		{"a pod with a broken image reports the reason", brokenImageReportsItsReason},
		{"a pod with init containers runs", initContainersRun},
		{"a Service gets an address of a load balancer", serviceGetsAnAddress},
		{"a namespace goes with all that is in it", namespaceGoes},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scene{Client: newClient(t, e.Config())}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scene-"}}
			s.create(t, namespace)
			s.namespace = namespace.Name
			test.play(t, s)
		})
	}
}

func (s scene) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if _, isNamespace := object.(*corev1.Namespace); !isNamespace {
			object.SetNamespace(s.namespace)
		}
		if err := s.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// until looks at an object until it is as it should be.
func (s scene) until(t *testing.T, object client.Object, reached func() bool) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%T %s", object, object.GetName()), func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if !reached() {
			return fmt.Errorf("it is %+v", object)
		}
		return nil
	})
}

// untilGone waits until an object does not exist any more.
func (s scene) untilGone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the end of %T %s", object, object.GetName()), func() error {
		err := s.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it exists (%v): %+v", err, object)
	})
}

// podTemplate has a short grace period, because the namespace controller waits for
// half of it before it looks again whether the pods of a namespace have gone.
func podTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "main", Image: image}},
			TerminationGracePeriodSeconds: new(int64(1)),
		},
	}
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}

func (s scene) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func claim(name, class string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	return c
}

func claimIsBound(t *testing.T, s scene) {
	c := claim("data", "")
	s.create(t, c)
	s.until(t, c, func() bool { return c.Status.Phase == corev1.ClaimBound })
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: c.Spec.VolumeName}}
	s.until(t, volume, func() bool { return volume.Status.Phase == corev1.VolumeBound })
	s.delete(t, c)
	s.untilGone(t, c)
	s.untilGone(t, volume)
}

func (s scene) delete(t *testing.T, object client.Object) {
	t.Helper()
	if err := s.Delete(context.WithoutCancel(t.Context()), object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
}

func job(template corev1.PodTemplateSpec) *batchv1.Job {
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: template},
	}
}
