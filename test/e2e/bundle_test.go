// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
)

// Bundle is a component with a generator that the test provides; the spec only has
// something to change.
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BundleSpec       `json:"spec,omitempty"`
	Status component.Status `json:"status,omitempty"`
}

// BundleSpec is any set of values.
type BundleSpec struct {
	component.PlacementSpec     `json:",inline"`
	component.ClientSpec        `json:",inline"`
	component.ImpersonationSpec `json:",inline"`
	component.RequeueSpec       `json:",inline"`
	component.TimeoutSpec       `json:",inline"`
	component.PolicySpec        `json:",inline"`
	component.TypeSpec          `json:",inline"`
	component.RollbackSpec      `json:",inline"`

	Values map[string]any `json:"values,omitempty"`
}

// DeepCopyInto copies the spec.
func (s *BundleSpec) DeepCopyInto(out *BundleSpec) {
	*out = *s
	s.ClientSpec.DeepCopyInto(&out.ClientSpec)
	s.RequeueSpec.DeepCopyInto(&out.RequeueSpec)
	s.TimeoutSpec.DeepCopyInto(&out.TimeoutSpec)
	s.TypeSpec.DeepCopyInto(&out.TypeSpec)
	s.RollbackSpec.DeepCopyInto(&out.RollbackSpec)
	out.Values = runtime.DeepCopyJSON(s.Values)
}

// texts are values that are all texts.
func texts(values map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range values {
		all[key] = value
	}
	return all
}

// ToUnstructured returns the values.
func (s *BundleSpec) ToUnstructured() map[string]any {
	if s.Values == nil {
		return map[string]any{}
	}
	return runtime.DeepCopyJSON(s.Values)
}

// GetSpec returns the parameters of the generator.
func (b *Bundle) GetSpec() types.Unstructurable { return &b.Spec }

// GetStatus returns Corbel's status.
func (b *Bundle) GetStatus() *component.Status { return &b.Status }

// DeepCopyObject returns a copy.
func (b *Bundle) DeepCopyObject() runtime.Object {
	out := &Bundle{TypeMeta: b.TypeMeta, Status: *b.Status.DeepCopy()}
	b.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	b.Spec.DeepCopyInto(&out.Spec)
	return out
}

// BundleList is a list of Bundles.
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *BundleList) DeepCopyObject() runtime.Object {
	out := &BundleList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta, Items: make([]Bundle, len(l.Items))}
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Bundle)
	}
	return out
}

var bundleVersion = schema.GroupVersion{Group: "e2e.corbel.run", Version: "v1"}

func addBundles(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(bundleVersion, &Bundle{}, &BundleList{})
	metav1.AddToGroupVersion(scheme, bundleVersion)
	return nil
}

// bundleCRD is the definition of Bundle; its schema keeps every field.
func bundleCRD() *apiextensionsv1.CustomResourceDefinition {
	keep := new(true)
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: keep}
	spec := *anything.DeepCopy()
	spec.Properties = map[string]apiextensionsv1.JSONSchemaProps{"values": anything}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "bundles.e2e.corbel.run"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "e2e.corbel.run",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "bundles", Singular: "bundle", Kind: "Bundle", ListKind: "BundleList", Categories: []string{"corbel"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": anything},
				}},
			}},
		},
	}
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
