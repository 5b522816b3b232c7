// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/pods"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/component"
)

// objectAnswer is a dependent, or a pod of one, with its live object.
type objectAnswer struct {
	dependentSummary
	YAML string `json:"yaml,omitempty"`
	// Containers are those of a pod. The first is the one that has failed, if there is one.
	Containers []string `json:"containers,omitempty"`
}

// keyIn is the key of the object that a request is about; it is empty for the component itself.
func keyIn(r *http.Request) string { return r.URL.Query().Get("object") }

// find returns the dependent, or the pod of one, with a key.
func (v view) find(key string) (inspect.Dependent, error) {
	for _, d := range v.dependents {
		if keyOf(d.Item) == key {
			return d, nil
		}
		for _, pod := range v.podsOf(d) {
			item := v1alpha1.InventoryItem{Version: "v1", Kind: "Pod", Namespace: pod.GetNamespace(), Name: pod.GetName(), UID: pod.GetUID()}
			if keyOf(item) == key {
				return v.component.Assess(item, pod), nil
			}
		}
	}
	return inspect.Dependent{}, cmp.Or(v.unread, error(refused{http.StatusNotFound, fmt.Sprintf("%s has no dependent object or pod %q", v.component, key)}))
}

func (s *Server) object(r *http.Request, _ *inspect.Reader, v view) (any, error) {
	d, err := v.find(keyIn(r))
	if err != nil {
		return nil, err
	}
	out := objectAnswer{dependentSummary: dependentOf(d, v.podsOf(d))}
	if d.Object == nil {
		return out, nil
	}
	if d.Item.Kind == "Pod" {
		out.Containers = containersOf(d.Object)
	}
	out.YAML, err = yamlOf(d.Object)
	return out, err
}

// yamlOf shows an object in which the values of a Secret are masked. Its annotations may hold them, too.
func yamlOf(object *unstructured.Unstructured) (string, error) {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	if annotations := object.GetAnnotations(); confidential.IsSecret(object.GroupVersionKind().GroupKind()) && len(annotations) > 0 {
		for name := range annotations {
			annotations[name] = "***"
		}
		object.SetAnnotations(annotations)
	}
	text, err := yaml.Marshal(object.Object)
	return string(text), err
}

func containersOf(object *unstructured.Unstructured) (names []string) {
	pod := corev1.Pod{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod) != nil {
		return nil
	}
	if worst, found := pods.Worst([]corev1.Pod{pod}); found && worst.Container != "" {
		names = append(names, worst.Container)
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// manifest is an object as its operator renders it, and what the operator would change of the live one.
type manifest struct {
	File    string                 `json:"file,omitempty"`
	YAML    string                 `json:"yaml,omitempty"` // empty if the operator does not render it
	Hidden  bool                   `json:"hidden,omitempty"`
	Changes []report.PlannedChange `json:"changes"`
}

// manifest asks the operator, which alone can render a component.
func (s *Server) manifest(r *http.Request, _ *inspect.Reader, v view) (any, error) {
	d, err := v.find(keyIn(r))
	if err != nil {
		return nil, err
	}
	answer, err := s.ask(r.Context(), v.component, preview.Question{Manifests: true})
	if err != nil {
		return nil, err
	}
	var plan component.Plan
	if err := json.Unmarshal(answer.Plan, &plan); err != nil || answer.Manifests == nil {
		return nil, fmt.Errorf("the answer of the operator of %s cannot be read, or has no manifests: %v", v.component, err)
	}
	out := manifest{Changes: []report.PlannedChange{}}
	for _, change := range plan.Changes {
		if change.Key == (report.Key{Group: d.Item.Group, Kind: d.Item.Kind, Namespace: d.Item.Namespace, Name: d.Item.Name}) {
			out.Changes = append(out.Changes, change)
		}
	}
	for _, rendered := range answer.Manifests.Objects {
		object := &unstructured.Unstructured{Object: rendered.Object}
		isThere := object.GetNamespace() == d.Item.Namespace || object.GetNamespace() == "" && answer.Manifests.Namespace == d.Item.Namespace
		if isThere && object.GetName() == d.Item.Name && object.GroupVersionKind().GroupKind() == inspect.KindOf(d.Item).GroupKind() {
			out.File, out.Hidden = rendered.File, rendered.Hidden
			out.YAML, err = yamlOf(v.component.Assess(d.Item, object).Object)
			return out, err
		}
	}
	return out, nil
}

// logLines and logBytes bound a log that is sent: it is the end. logRead bounds what is read: of a longer log the API server leaves out the end.
const logLines, logBytes, logRead = 500, 512 << 10, 16 << 20

// log reads the log of a container of a pod.
func (s *Server) log(r *http.Request, _ *inspect.Reader, v view) (any, error) {
	d, err := v.find(keyIn(r))
	if err == nil && !strings.HasPrefix(keyIn(r), "/Pod/") {
		err = bad("%s is no pod, and has no log", d)
	}
	if err != nil {
		return nil, err
	}
	core, err := typedcorev1.NewForConfigAndClient(s.cluster.Config, s.cluster.HTTP)
	if err != nil {
		return nil, err
	}
	container := r.URL.Query().Get("container")
	text, err := core.Pods(d.Item.Namespace).GetLogs(d.Item.Name, &corev1.PodLogOptions{
		Container: container, Previous: r.URL.Query().Get("previous") != "", TailLines: new(int64(logLines)), LimitBytes: new(int64(logRead)),
	}).DoRaw(r.Context())
	if err != nil {
		return nil, fmt.Errorf("the log of container %s of %s cannot be read: %w", container, d, err)
	}
	text = text[max(0, len(text)-logBytes):]
	return map[string]any{"text": confidential.Filter(strings.ToValidUTF8(string(text), "\uFFFD")), "lines": logLines}, nil
}
