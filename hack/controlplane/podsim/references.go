// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	coreinformers "k8s.io/client-go/informers/core/v1"
)

// lookAgain is how long a pod waits until the objects that it refers to are looked up again. They are looked up in a cache,
// so that this costs no request.
const lookAgain = 500 * time.Millisecond

const configError = "CreateContainerConfigError"

// The kinds of objects that a lookup finds.
const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// keys are the keys of a Secret or ConfigMap. The value is false for a key of binaryData, which a variable cannot refer to.
type keys map[string]bool

// A lookup returns the keys of a Secret or ConfigMap, and reports whether it exists.
type lookup func(kind, namespace, name string) (keys, bool)

// newLookup returns a lookup in the caches of the informers, which have to be started afterwards.
func newLookup(core coreinformers.Interface) (lookup, error) {
	secrets, configMaps := core.Secrets(), core.ConfigMaps()
	err := errors.Join(secrets.Informer().SetTransform(forgetValues), configMaps.Informer().SetTransform(forgetValues))
	find := func(kind, namespace, name string) (keys, bool) {
		found := keys{}
		if kind == kindSecret {
			secret, err := secrets.Lister().Secrets(namespace).Get(name)
			if err != nil {
				return nil, false
			}
			for key := range secret.Data {
				found[key] = true
			}
			return found, true
		}
		configMap, err := configMaps.Lister().ConfigMaps(namespace).Get(name)
		if err != nil {
			return nil, false
		}
		for key := range configMap.BinaryData {
			found[key] = false
		}
		for key := range configMap.Data {
			found[key] = true
		}
		return found, true
	}
	return find, err
}

// forgetValues keeps of a Secret or ConfigMap the keys alone. A cache of whole objects would take the memory of all releases
// and inventories of a cluster.
func forgetValues(object any) (any, error) {
	meta := func(m metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	}
	switch o := object.(type) {
	case *corev1.Secret:
		return &corev1.Secret{ObjectMeta: meta(o.ObjectMeta), Data: withoutValues(o.Data)}, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: meta(o.ObjectMeta), Data: withoutValues(o.Data), BinaryData: withoutValues(o.BinaryData)}, nil
	}
	return object, nil
}

func withoutValues[V any](data map[string]V) map[string]V {
	if len(data) == 0 {
		return nil
	}
	var none V
	blank := make(map[string]V, len(data))
	for key := range data {
		blank[key] = none
	}
	return blank
}

// notFound is the error of a kubelet, which names the kind in lower case: secret "x" not found.
func notFound(kind, name string) error {
	return apierrors.NewNotFound(corev1.Resource(strings.ToLower(kind)), name)
}

// variablesProblem returns why the variables of a container cannot be made, in the words of a kubelet; empty if they can.
func (find lookup) variablesProblem(pod *corev1.Pod, c corev1.Container) string {
	// An empty key stands for all keys.
	problem := func(kind, name, key string, optional *bool) string {
		found, ok := find(kind, pod.Namespace, name)
		switch {
		case optional != nil && *optional:
			return ""
		case !ok:
			return notFound(kind, name).Error()
		case key != "" && !found[key]:
			return fmt.Sprintf("couldn't find key %s in %s %s/%s", key, kind, pod.Namespace, name)
		}
		return ""
	}
	for _, from := range c.EnvFrom {
		text := ""
		if r := from.ConfigMapRef; r != nil {
			text = problem(kindConfigMap, r.Name, "", r.Optional)
		} else if r := from.SecretRef; r != nil {
			text = problem(kindSecret, r.Name, "", r.Optional)
		}
		if text != "" {
			return text
		}
	}
	for _, variable := range c.Env {
		if variable.ValueFrom == nil {
			continue
		}
		text := ""
		if r := variable.ValueFrom.ConfigMapKeyRef; r != nil {
			text = problem(kindConfigMap, r.Name, r.Key, r.Optional)
		} else if r := variable.ValueFrom.SecretKeyRef; r != nil {
			text = problem(kindSecret, r.Name, r.Key, r.Optional)
		}
		if text != "" {
			return text
		}
	}
	return ""
}

// volumesProblems returns why volumes of the pod cannot be mounted, in the words of a kubelet. A volume that no container
// mounts does not matter.
func (find lookup) volumesProblems(pod *corev1.Pod) (problems []string) {
	mounted := map[string]bool{}
	for _, c := range allContainers(pod) {
		for _, mount := range c.VolumeMounts {
			mounted[mount.Name] = true
		}
	}
	for _, v := range pod.Spec.Volumes {
		var errs []error
		switch {
		case !mounted[v.Name]:
		case v.Secret != nil:
			errs = append(errs, find.projectionProblem(kindSecret, pod.Namespace, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional))
		case v.ConfigMap != nil:
			errs = append(errs, find.projectionProblem(kindConfigMap, pod.Namespace, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional))
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if s := source.Secret; s != nil {
					errs = append(errs, find.projectionProblem(kindSecret, pod.Namespace, s.Name, s.Items, s.Optional))
				} else if s := source.ConfigMap; s != nil {
					errs = append(errs, find.projectionProblem(kindConfigMap, pod.Namespace, s.Name, s.Items, s.Optional))
				}
			}
		}
		if err := kerrors.NewAggregate(errs); err != nil {
			problems = append(problems, fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", v.Name, err))
		}
	}
	return problems
}

// projectionProblem returns why the keys of a Secret or ConfigMap cannot become files; nil if they can.
func (find lookup) projectionProblem(kind, namespace, name string, items []corev1.KeyToPath, optional *bool) error {
	found, ok := find(kind, namespace, name)
	if optional != nil && *optional {
		return nil
	}
	if !ok {
		return notFound(kind, name)
	}
	for _, item := range items {
		if _, ok := found[item.Key]; ok {
			continue
		}
		if kind == kindSecret {
			return fmt.Errorf("references non-existent secret key: %s", item.Key)
		}
		return fmt.Errorf("configmap references non-existent config key: %s", item.Key)
	}
	return nil
}

// pullSecretsProblem returns what a kubelet says about pull secrets that do not exist. It pulls images without them.
func (find lookup) pullSecretsProblem(pod *corev1.Pod) string {
	var missing []string
	for _, reference := range pod.Spec.ImagePullSecrets {
		if _, ok := find(kindSecret, pod.Namespace, reference.Name); !ok && reference.Name != "" {
			missing = append(missing, reference.Name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.",
		strings.Join(missing, ", "))
}
