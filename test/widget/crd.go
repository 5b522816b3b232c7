// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type props = map[string]apiextensionsv1.JSONSchemaProps

// CRD returns the definition of the widget. Change it to make it outdated.
func CRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	number := apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	condition := object(props{
		"type": text, "status": text, "reason": text, "message": text, "observedGeneration": number,
		"lastTransitionTime": {Type: "string", Format: "date-time"},
	})
	schema := object(props{
		"spec": object(props{"size": number}),
		"status": object(props{
			"observedGeneration": number,
			"phase":              text,
			"record":             list(object(props{"name": text, "uid": text})),
			"conditions":         list(condition),
		}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: GroupVersion.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: GroupVersion.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// StatusSchema returns the schema of status in the definition, to be changed.
func StatusSchema(crd *apiextensionsv1.CustomResourceDefinition) props {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
}

func object(properties props) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
}

func list(element apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &element}}
}
