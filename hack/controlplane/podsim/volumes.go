// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	provisioner = "podsim.corbel.run/volumes"

	// set by the volume controller on a claim that we are to provide for
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// set on volumes, so that the volume controller leaves their removal to us
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
	defaultClassAnnotation  = "storageclass.kubernetes.io/is-default-class"
)

// createStorageClasses makes our classes, unless they exist.
func createStorageClasses(ctx context.Context, client kubernetes.Interface) error {
	for _, class := range []*storagev1.StorageClass{
		{
			ObjectMeta:        metav1.ObjectMeta{Name: "standard", Annotations: map[string]string{defaultClassAnnotation: "true"}},
			VolumeBindingMode: new(storagev1.VolumeBindingImmediate),
		},
		{
			ObjectMeta:        metav1.ObjectMeta{Name: "standard-wait"},
			VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
		},
	} {
		class.Provisioner = provisioner
		class.AllowVolumeExpansion = new(false)
		_, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// volumes provides claims with volumes, and removes volumes that are not claimed any
// more. The binding itself is done by the volume controller.
type volumes struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
}

func newVolumes(s *simulator) *volumes {
	core := s.informers.Core().V1()
	return &volumes{
		client: s.client, claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		classes: s.informers.Storage().V1().StorageClasses().Lister(),
	}
}

// provision makes the volume of a claim when the volume controller asks for it. For
// a class that waits for a consumer, it does so once the pod has a node.
func (v *volumes) provision(ctx context.Context, key string) (time.Duration, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, nil // no key that an informer made
	}
	claim, err := v.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil ||
		claim.Annotations[provisionerAnnotation] != provisioner || claim.Spec.StorageClassName == nil {
		return 0, nil
	}
	class, err := v.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return 0, err
	}
	_, err = v.client.CoreV1().PersistentVolumes().Create(ctx, newVolume(claim, class), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return 0, nil
	}
	return 0, err
}

// newVolume is named for the claim's uid, so that there cannot be two for one claim.
func newVolume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedByAnnotation: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: policy,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			// A path that is never read; it needs no attaching.
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/podsim/" + name},
			},
		},
	}
}

// remove deletes a volume of ours when its claim is gone, if that is its policy.
func (v *volumes) remove(ctx context.Context, name string) (time.Duration, error) {
	volume, err := v.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if volume.Annotations[provisionedByAnnotation] != provisioner || volume.DeletionTimestamp != nil ||
		volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return 0, nil
	}
	return 0, v.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(volume.UID)),
	})
}
