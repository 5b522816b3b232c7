// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/test/check"
)

// gadget is a second kind of components.
type gadget struct {
	widget.Widget `json:",inline"`
}

func (g *gadget) DeepCopyObject() runtime.Object { return &gadget{*g.Widget.DeepCopy()} }

type gadgetList struct {
	widget.WidgetList `json:",inline"`
}

func (l *gadgetList) DeepCopyObject() runtime.Object { return &gadgetList{*l.WidgetList.DeepCopy()} }

var gadgetVersion = schema.GroupVersion{Group: "gadgets.test.corbel.run", Version: "v1"}

// gadgets is an operator for gadgets that renders what widgets render.
func gadgets() Options[*gadget] {
	return Options[*gadget]{
		Name: "gadgets.example.com", Generator: widgets().Generator,
		SchemeBuilder: new(runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
			scheme.AddKnownTypeWithName(gadgetVersion.WithKind("Gadget"), &gadget{})
			scheme.AddKnownTypeWithName(gadgetVersion.WithKind("GadgetList"), &gadgetList{})
			metav1.AddToGroupVersion(scheme, gadgetVersion)
			return nil
		})),
	}
}

// bothKinds is a program for widgets and gadgets.
func bothKinds() program { return program{"both.example.com", []Kind{widgets(), gadgets()}} }

// gadgetDefinition is the CustomResourceDefinition of the gadgets.
func gadgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	any := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + gadgetVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gadgetVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Kind: "Gadget", ListKind: "GadgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gadgetVersion.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &any},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

func TestTheCommandsOfAKindAreBelowItsName(t *testing.T) {
	p := bothKinds()
	for _, args := range []string{"run", "uninstall", "version", "widget plan", "widget render", "gadget rbac", "gadget crd"} {
		found, _, err := p.command().Find(strings.Fields(args))
		check.NoError(t, err)
		check.SameNamed(t, args, p.name+" "+args, found.CommandPath())
	}
	check.Fails(t, check.ErrorOf(program{name: "none"}.scheme()), "the program has no kind of components")
	own := gadgets()
	own.Reconciler.Controller.LabelSelector = &metav1.LabelSelector{}
	_, _, err := program{"both.example.com", []Kind{widgets(), own}}.selected("a=b")
	check.Fails(t, err, "selects its components by itself")
}
