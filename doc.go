// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package corbel is the root of a library for component operators: operators that install a set of
// Kubernetes objects for each custom resource, keep them as they should be, upgrade them, roll them
// back, and remove them with the custom resource.
//
// The author of an operator writes a type for the custom resource and a generator, which says which
// objects belong to it: a Helm chart, a kustomization, Go templates, plain YAML or Go code. Corbel does
// the rest: order, waiting, upgrades, pruning, repair, deletion, status and events. A reconciler of
// Corbel is a controller in a manager of controller-runtime, beside any others.
//
// This is an operator for a Helm chart. The type Shop embeds the values of the chart in its spec and
// a component.Status in its status:
//
//	//go:embed all:examples/shop/chart
//	var files embed.FS
//
//	func main() {
//		operator.Main(operator.Options[*v1alpha1.Shop]{
//			Name:          "shop.example.com",
//			SchemeBuilder: &v1alpha1.SchemeBuilder,
//			Generator: func() (manifests.Generator, error) {
//				return helm.New(files, "examples/shop/chart", helm.Options{})
//			},
//		})
//	}
//
// The command [github.com/corbel-run/corbel/cmd/corbel] makes such a project from a chart, with the
// type, the CustomResourceDefinition, the RBAC rules, tests and an image.
//
// # Packages of an operator
//
//   - [github.com/corbel-run/corbel/pkg/operator] is the program: flags, probes, metrics, leader election.
//   - [github.com/corbel-run/corbel/pkg/component] is the reconciler for a type: options, hooks, what a
//     component configures, status, plans and rollbacks. Start here.
//   - [github.com/corbel-run/corbel/pkg/component/componenttest] tests an operator against a real API
//     server, with a crash at each write.
//   - [github.com/corbel-run/corbel/api/v1alpha1] holds what is stored: policies, inventory, states,
//     reasons and annotations.
//
// # Generators
//
//   - [github.com/corbel-run/corbel/pkg/manifests] has the interface, plain YAML, Go functions, and
//     what joins, transforms and isolates generators.
//   - [github.com/corbel-run/corbel/pkg/manifests/helm], [github.com/corbel-run/corbel/pkg/manifests/kustomize],
//     [github.com/corbel-run/corbel/pkg/manifests/gotemplate] and [github.com/corbel-run/corbel/pkg/manifests/krm]
//     render charts, kustomizations, Go templates and KRM functions.
//   - [github.com/corbel-run/corbel/pkg/manifests/transform] changes what was rendered.
//
// # Controllers of other kinds
//
//   - [github.com/corbel-run/corbel/pkg/reconciler] is the engine that applies and deletes sets of
//     objects. It needs no component.
//   - [github.com/corbel-run/corbel/pkg/lifecycle] is the loop of a controller that creates and deletes
//     anything else, and [github.com/corbel-run/corbel/pkg/lifecycle/external] its handler for an API
//     outside of the cluster.
//   - [github.com/corbel-run/corbel/pkg/changes] calls a function for every change of objects.
//
// The packages conditions, result, summarize, patch, steps, status and types, also below pkg,
// are the parts that these are made of, and can be used alone.
//
// The guides are in the folder docs of the repository, and begin with docs/concepts.md. This package
// has no names of its own.
package corbel
