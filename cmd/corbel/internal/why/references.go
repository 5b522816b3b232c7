// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/sentence"
)

// reference is an object that a pod refers to.
type reference struct {
	object Object
	// key is empty if the object as a whole is meant.
	key string
	// field is the field of the pod.
	field string
}

// environmentOf returns the references of the variables of a container.
func environmentOf(pod corev1.Pod, container corev1.Container) (all []reference) {
	field := containerField(pod, container.Name)
	add := func(kind, name, key, at string) {
		all = append(all, reference{known(kind, pod.Namespace, name), key, field + at})
	}
	for _, variable := range container.Env {
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
			add("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key, ".env["+variable.Name+"]")
		} else if from != nil && from.ConfigMapKeyRef != nil {
			add("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, ".env["+variable.Name+"]")
		}
	}
	for _, from := range container.EnvFrom {
		if from.SecretRef != nil {
			add("Secret", from.SecretRef.Name, "", ".envFrom")
		} else if from.ConfigMapRef != nil {
			add("ConfigMap", from.ConfigMapRef.Name, "", ".envFrom")
		}
	}
	return all
}

// volumeOf returns the references of a volume, but for optional ones.
func volumeOf(pod corev1.Pod, name string) (all []reference) {
	field := "spec.volumes[" + name + "]"
	add := func(kind, object string, optional *bool, items []corev1.KeyToPath) {
		if optional != nil && *optional {
			return
		}
		o := known(kind, pod.Namespace, object)
		all = append(all, reference{o, "", field})
		for _, item := range items {
			all = append(all, reference{o, item.Key, field})
		}
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != name {
			continue
		}
		if s := volume.Secret; s != nil {
			add("Secret", s.SecretName, s.Optional, s.Items)
		}
		if c := volume.ConfigMap; c != nil {
			add("ConfigMap", c.Name, c.Optional, c.Items)
		}
		if c := volume.PersistentVolumeClaim; c != nil {
			add("PersistentVolumeClaim", c.ClaimName, nil, nil)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if s := source.Secret; s != nil {
				add("Secret", s.Name, s.Optional, s.Items)
			}
			if c := source.ConfigMap; c != nil {
				add("ConfigMap", c.Name, c.Optional, c.Items)
			}
		}
	}
	return all
}

// dangling explains a pod by the first reference that leads nowhere; it returns false if none does. The message of the kubelet is for
// users who may not read the object.
func (e *explainer) dangling(references []reference, message string, workload, link Link) bool {
	for _, r := range references {
		live, answered := e.get(r.object)
		says := !answered && strings.Contains(message, strconv.Quote(r.object.Name)+" not found")
		saysKey := !answered && r.key != "" && (strings.Contains(message, "key "+r.key+" in ") || strings.HasSuffix(message, "key: "+r.key))
		cause, command := Link{Object: r.object, Message: "does not exist"}, r.object.listing()
		switch {
		case says, answered && live == nil:
		case saysKey, live != nil && r.key != "" && !hasKey(*live, r.key):
			command = keysCommand(r.object)
			cause.Field, cause.Message = "data."+r.key, fmt.Sprintf("the key %s does not exist", r.key)
			if live != nil {
				cause.Message += keysText(*live)
			}
		default:
			continue
		}
		link.Field = r.field
		e.found(MissingReference, command, workload, link, cause)
		return true
	}
	return false
}

// keysCommand prints the keys of a Secret or ConfigMap, without their values.
func keysCommand(o Object) string {
	return o.kubectl("get", "-o", "go-template={{range $k, $v := .data}}{{$k}} {{end}}")
}

// dataOf returns the data of a Secret or ConfigMap.
func dataOf(live unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for _, field := range []string{"data", "binaryData"} {
		part, _, _ := unstructured.NestedMap(live.Object, field)
		maps.Copy(all, part)
	}
	return all
}

func hasKey(live unstructured.Unstructured, key string) bool {
	_, found := dataOf(live)[key]
	return found
}

// keysText names the keys of a Secret or ConfigMap.
func keysText(live unstructured.Unstructured) string {
	keys := slices.Sorted(maps.Keys(dataOf(live)))
	if len(keys) == 0 {
		return " (it has no keys)"
	}
	return " (keys: " + sentence.Shorten(strings.Join(keys, ", "), maxMessage) + ")"
}
