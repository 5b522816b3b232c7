// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The shop is an operator for web shops: it deploys what the chart renders for a Shop. Its commands are those of
// package operator.
package main

import (
	"embed"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/operator"
)

const name = "shop.example.com"

//go:embed all:chart
var chart embed.FS

//go:embed config/crd
var definitions embed.FS

func main() { operator.Main(options()) }

// options describe the operator.
func options() operator.Options[*shopv1alpha1.Shop] {
	return operator.Options[*shopv1alpha1.Shop]{
		Name: name, SchemeBuilder: &shopv1alpha1.SchemeBuilder, CRDs: definitions,
		Generator: func() (manifests.Generator, error) { return helm.New(chart, "chart", helm.Options{}) },
		// The Shops of earlier versions have it.
		Reconciler: component.ReconcilerOptions{Finalizer: new(name)},
	}
}
