// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/document"
)

// prerequisitesFile has the objects that pods of the sample refer to and that nothing renders.
const prerequisitesFile = "samples/prerequisites/objects.yaml"

const prerequisitesComment = `# Pods of the sample refer to these objects, and nothing renders them. "make run" and "make test" create them before the
# sample. In a cluster, the users of the operator create them.
`

// reference names a Secret or a ConfigMap that pods refer to.
type reference struct{ kind, namespace, name string }

// sampleNamespace is the namespace of the component in a golden file.
const sampleNamespace = "default"

func namespaceOf(object *unstructured.Unstructured) string {
	return cmp.Or(object.GetNamespace(), sampleNamespace)
}

// prerequisites returns the file with the Secrets and ConfigMaps that pods of a golden file need and that it does not have; nil
// if there are none. A pod in a namespace that the source names needs objects in it: notes name them, because the namespace may
// not exist before the sample.
func prerequisites(golden []byte) (file []byte, notes []string, err error) {
	objects, err := document.Decode(goldenFile, golden)
	if err != nil {
		return nil, nil, err
	}
	needed := map[reference]map[string]bool{}
	for _, object := range objects {
		if cluster.IsBuiltIn(object.GroupVersionKind().Group) {
			eachPodSpec(object.Object, func(pod corev1.PodSpec) { eachReference(pod, namespaceOf(object), needed) })
		}
	}
	for _, object := range objects {
		delete(needed, reference{object.GetKind(), namespaceOf(object), object.GetName()})
	}
	var out bytes.Buffer
	for _, r := range slices.SortedFunc(maps.Keys(needed), func(a, b reference) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	}) {
		if r.namespace != sampleNamespace {
			notes = append(notes, fmt.Sprintf("pods of the sample need the %s %s in the namespace %s, and nothing renders it", r.kind, r.name, r.namespace))
			continue
		}
		data := map[string]string{}
		for key := range needed[r] {
			data[key] = "change-me"
		}
		field := map[string]string{"Secret": "stringData", "ConfigMap": "data"}[r.kind]
		text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": r.kind, "metadata": map[string]any{"name": r.name}, field: data})
		if err != nil {
			return nil, nil, err
		}
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	if out.Len() == 0 {
		return nil, notes, nil
	}
	notes = append(notes, "pods of the sample need objects that nothing renders: "+prerequisitesFile+" has them, with values to replace")
	return append([]byte(prerequisitesComment), out.Bytes()...), notes, nil
}

// eachPodSpec calls a function for each value in an object that is the spec of a pod.
func eachPodSpec(value any, do func(corev1.PodSpec)) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			eachPodSpec(element, do)
		}
	case map[string]any:
		var pod corev1.PodSpec
		if _, isList := value["containers"].([]any); isList && runtime.DefaultUnstructuredConverter.FromUnstructured(value, &pod) == nil {
			do(pod)
			return
		}
		for _, field := range value {
			eachPodSpec(field, do)
		}
	}
}

// eachReference adds what a pod does not start without, with its keys.
func eachReference(pod corev1.PodSpec, namespace string, needed map[reference]map[string]bool) {
	need := func(kind, name string, optional *bool, keys ...string) {
		if optional != nil && *optional || name == "" || name == "kube-root-ca.crt" || strings.Contains(name, "(random)") {
			return
		}
		r := reference{kind, namespace, name}
		if needed[r] == nil {
			needed[r] = map[string]bool{}
		}
		for _, key := range keys {
			needed[r][key] = true
		}
	}
	keys := func(items []corev1.KeyToPath) (keys []string) {
		for _, item := range items {
			keys = append(keys, item.Key)
		}
		return keys
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, from := range container.EnvFrom {
			if s := from.SecretRef; s != nil {
				need("Secret", s.Name, s.Optional)
			}
			if c := from.ConfigMapRef; c != nil {
				need("ConfigMap", c.Name, c.Optional)
			}
		}
		for _, variable := range container.Env {
			if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
				need("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Optional, from.SecretKeyRef.Key)
			} else if from != nil && from.ConfigMapKeyRef != nil {
				need("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional, from.ConfigMapKeyRef.Key)
			}
		}
	}
	for _, volume := range pod.Volumes {
		sources := []corev1.VolumeProjection{}
		if s := volume.Secret; s != nil {
			need("Secret", s.SecretName, s.Optional, keys(s.Items)...)
		} else if c := volume.ConfigMap; c != nil {
			need("ConfigMap", c.Name, c.Optional, keys(c.Items)...)
		} else if volume.Projected != nil {
			sources = volume.Projected.Sources
		}
		for _, source := range sources {
			if s := source.Secret; s != nil {
				need("Secret", s.Name, s.Optional, keys(s.Items)...)
			} else if c := source.ConfigMap; c != nil {
				need("ConfigMap", c.Name, c.Optional, keys(c.Items)...)
			}
		}
	}
}
