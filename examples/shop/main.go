// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The shop is an operator for web shops: it deploys what the chart renders for a Shop, and an Advert with the address of
// a Shop. Its commands are those of package operator.
package main

import (
	"context"
	"embed"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/operator"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

const name = "shop.example.com"

//go:embed all:chart
var chart embed.FS

//go:embed config/crd
var definitions embed.FS

func main() { operator.MainOf(name, options(), adverts()) }

// options describe the operator of Shops.
func options() operator.Options[*shopv1alpha1.Shop] {
	return operator.Options[*shopv1alpha1.Shop]{
		Name: name, SchemeBuilder: &shopv1alpha1.SchemeBuilder, CRDs: definitions,
		Generator: func() (manifests.Generator, error) { return helm.New(chart, "chart", helm.Options{}) },
		Reconciler: component.ReconcilerOptions{
			// The Shops of earlier versions have it.
			Finalizer: new(name),
			Objects: component.ObjectOptions{Outputs: []component.Output{{
				Name: "address", Type: reconciler.TypeInfo{Kind: "Service"}, Object: "*-web",
				Expression: "self.metadata.name + '.' + self.metadata.namespace + '.svc:' + string(self.spec.ports[0].port)",
			}}},
		},
	}
}

// adverts describe the operator of Adverts.
func adverts() operator.Options[*shopv1alpha1.Advert] {
	return operator.Options[*shopv1alpha1.Advert]{
		Name: "advert." + name, SchemeBuilder: &shopv1alpha1.SchemeBuilder, CRDs: definitions,
		// Another digest says that the code makes other objects.
		Generator: func() (manifests.Generator, error) { return manifests.WithDigest(manifests.For(advert), "1"), nil },
	}
}

// advert returns the ConfigMap of an Advert.
func advert(_ context.Context, _, name string, spec *shopv1alpha1.AdvertSpec) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-advert"},
		Data:       map[string]string{"text": spec.Text, "address": spec.Input("shop.address")},
	}}, nil
}
