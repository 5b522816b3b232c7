// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

func TestPodsWaitForTheObjectsThatTheyReferTo(t *testing.T) {
	t.Parallel()
	c := check.Must(client.New(New(t, Options{Cluster: true}).Config(), client.Options{}))(t)
	create := func(name, spec string) (*corev1.Pod, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		check.NoError(t, yaml.UnmarshalStrict([]byte(spec), &pod.Spec))
		return pod, c.Create(t.Context(), pod)
	}
	const volume = "{containers: [{name: main, image: web, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, %s}]}"
	_, err := create("account", "{serviceAccountName: gone, containers: [{name: main, image: web}]}")
	check.Fails(t, err, "forbidden", `serviceaccount "gone" not found`)
	for name, pod := range map[string]struct{ spec, says string }{
		"key": {
			"{containers: [{name: main, image: web, env: [{name: A, valueFrom: {secretKeyRef: {name: login, key: password}}}]}]}",
			`CreateContainerConfigError: secret "login" not found`,
		},
		"secret": {fmt.Sprintf(volume, "secret: {secretName: login}"), `FailedMount: MountVolume.SetUp failed for volume "v" : secret "login" not found`},
		"claim":  {fmt.Sprintf(volume, "persistentVolumeClaim: {claimName: data}"), `persistentvolumeclaim "data" not found`},
		"pull": {
			"{imagePullSecrets: [{name: registry}], containers: [{name: main, image: web}]}",
			"FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (registry); attempting to pull the image may not succeed.",
		},
	} {
		created := check.Must(create(name, pod.spec))(t)
		Until(t, "pod "+name+" to say what is missing", func() error {
			says, err := whatAPodSays(t, c, created)
			if err == nil && !strings.Contains(says, pod.says) {
				err = fmt.Errorf("it says %s", says)
			}
			return err
		})
	}

	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("data")}
	check.NoError(t, yaml.UnmarshalStrict([]byte("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"), &claim.Spec))
	for _, object := range []client.Object{claim, &corev1.Secret{ObjectMeta: meta("login"), StringData: map[string]string{"password": "x"}}} {
		check.NoError(t, c.Create(t.Context(), object))
	}
	for _, name := range []string{"key", "secret", "claim", "pull"} {
		Until(t, "pod "+name+" to be ready", func() error {
			says, err := whatAPodSays(t, c, &corev1.Pod{ObjectMeta: meta(name)})
			if err == nil && !strings.Contains(says, "; Ready: True") {
				err = fmt.Errorf("it says %s", says)
			}
			return err
		})
	}
}

// whatAPodSays returns the conditions, the reasons of containers that wait, and the events of a pod, which it reads.
func whatAPodSays(t *testing.T, c client.Client, pod *corev1.Pod) (string, error) {
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		return "", err
	}
	events := &corev1.EventList{}
	if err := c.List(t.Context(), events, client.InNamespace(pod.Namespace)); err != nil {
		return "", err
	}
	var says []string
	for _, condition := range pod.Status.Conditions {
		says = append(says, fmt.Sprintf("%s: %s: %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	for _, container := range pod.Status.ContainerStatuses {
		if w := container.State.Waiting; w != nil {
			says = append(says, w.Reason+": "+w.Message)
		}
	}
	for _, event := range events.Items {
		if event.InvolvedObject.UID == pod.UID {
			says = append(says, event.Reason+": "+event.Message)
		}
	}
	return strings.Join(says, "; "), nil
}
