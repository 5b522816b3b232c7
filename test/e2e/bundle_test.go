// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/types"
)

// Bundle is a component with a generator that the test provides: the Widget of the tests with nothing but its values as parameters.
type Bundle struct {
	widget.Widget `json:",inline"`
}

// BundleSpec is the spec of a Bundle.
type BundleSpec = widget.Spec

// GetSpec returns the spec, with the values as the parameters of the generator.
func (b *Bundle) GetSpec() types.Unstructurable { return &valuesOfSpec{&b.Spec} }

type valuesOfSpec struct{ *widget.Spec }

// ToUnstructured returns the values.
func (s *valuesOfSpec) ToUnstructured() map[string]any { return values(s.Values).ToUnstructured() }

// DeepCopyObject returns a copy.
func (b *Bundle) DeepCopyObject() runtime.Object { return &Bundle{*b.DeepCopy()} }

// BundleList is a list of Bundles.
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *BundleList) DeepCopyObject() runtime.Object {
	out := &BundleList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		out.Items = append(out.Items, Bundle{*l.Items[i].DeepCopy()})
	}
	return out
}

func addBundles(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(widget.GroupVersion.WithKind("Widget"), &Bundle{})
	scheme.AddKnownTypeWithName(widget.GroupVersion.WithKind("WidgetList"), &BundleList{})
	metav1.AddToGroupVersion(scheme, widget.GroupVersion)
	return nil
}

// values are parameters of a generator that are all texts.
type values map[string]string

// ToUnstructured returns the values.
func (v values) ToUnstructured() map[string]any {
	all := map[string]any{}
	for key, value := range v {
		all[key] = value
	}
	return all
}

// valueOf returns one of the parameters; empty if there is none.
func valueOf(parameters types.Unstructurable, name string) string {
	value, _ := parameters.ToUnstructured()[name].(string)
	return value
}

// The manifests that scenarios are made of. Annotations come in pairs, without
// their prefix; a name can be "namespace/name".

func configMap(name, version string, annotations ...string) string {
	return head("v1", "ConfigMap", name, annotations) + "data: {version: " + quoted(version) + "}\n"
}

func secret(name, version string, annotations ...string) string {
	return head("v1", "Secret", name, annotations) + "stringData: {version: " + quoted(version) + "}\n"
}

func service(name, port string, annotations ...string) string {
	return head("v1", "Service", name, annotations) + "spec: {ports: [{name: p, port: " + port + "}]}\n"
}

func serviceAccount(name string) string { return head("v1", "ServiceAccount", name, nil) }

func namespace(name string, annotations ...string) string {
	return head("v1", "Namespace", name, annotations)
}

// job is complete as soon as its controller looks at it.
func job(name, version string, annotations ...string) string {
	return head("batch/v1", "Job", name, annotations) +
		"spec: {completions: 0, parallelism: 0, template: {metadata: {annotations: {version: " + quoted(version) + "}}, " +
		"spec: {restartPolicy: Never, containers: [{name: c, image: 'task:1'}]}}}\n"
}

// crd is the type Gear of the scenario's own group.
func crd(annotations ...string) string {
	return head("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gears.$ID.e2e.corbel.run", annotations) +
		"spec: {group: $ID.e2e.corbel.run, scope: Namespaced, names: {plural: gears, singular: gear, kind: Gear, listKind: GearList}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n"
}

// gear is an instance of the type; it is ready as soon as it exists.
func gear(name, version string, annotations ...string) string {
	annotations = append(annotations, "ready-when", "true")
	return head("$ID.e2e.corbel.run/v1", "Gear", name, annotations) + "spec: {version: " + quoted(version) + "}\n"
}

func head(apiVersion, kind, name string, annotations []string) string {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n", apiVersion, kind)
	if namespace, rest, found := strings.Cut(name, "/"); found {
		text += "  namespace: " + namespace + "\n"
		name = rest
	}
	text += "  name: " + name + "\n"
	if len(annotations) == 0 {
		return text
	}
	text += "  annotations:\n"
	for i := 0; i < len(annotations); i += 2 {
		key := annotations[i]
		if !strings.Contains(key, "/") {
			key = reconcilerName + "/" + key
		}
		text += "    " + key + ": " + quoted(annotations[i+1]) + "\n"
	}
	return text
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }
