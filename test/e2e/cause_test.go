// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// unpullable is a workload with an image that cannot be pulled.
func unpullable(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
	labels := map[string]string{"app": "api"}
	return []client.Object{&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "api"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "api", Image: "registry.example.com/api:broken"}}},
			},
		},
	}}, nil
}

func TestAnImageThatCannotBePulledIsNamedInReadyWithinTenSeconds(t *testing.T) {
	f := newFixture(t)
	f.startWith(t, manifests.GeneratorFunc(unpullable), nil)
	bundle := f.bundle(t, nil)
	eventually(t, "the pod to fail", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := f.List(ctx, pods, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, container := range pod.Status.ContainerStatuses {
				if waiting := container.State.Waiting; waiting != nil && strings.Contains(waiting.Reason, "Pull") {
					return nil
				}
			}
		}
		return fmt.Errorf("%d pods, and none failed to pull its image", len(pods.Items))
	})
	eventually(t, "Ready to name the cause", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		_, reason, message := bundle.GetStatus().GetState()
		if !strings.Contains(message, "Deployment "+f.namespace+"/api") || !strings.Contains(message, "Pull") {
			return fmt.Errorf("%s: %s", reason, message)
		}
		return nil
	})
}
