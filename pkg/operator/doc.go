// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package operator is the program of an operator with one type of component: its flags, its
// manager with probes, metrics and leader election, and its commands.
//
//	func main() {
//		operator.Main(operator.Options[*v1alpha1.Shop]{
//			Name:          "shop.example.com",
//			SchemeBuilder: &v1alpha1.SchemeBuilder,
//			Generator:     func() (manifests.Generator, error) { return helm.New(chart, "chart", helm.Options{}) },
//		})
//	}
//
// # Commands
//
// run, which is the default, runs the operator until it gets SIGTERM. uninstall deletes all
// components and waits until they are gone; the operator has to run meanwhile. version prints the
// version of the program.
//
// plan prints the plan of this version of the operator for a component that is stored, for one in a
// file, or for all, with the rights of the user who calls it. It writes nothing.
//
// render, images and rbac need no cluster: they print the manifests for components in files, with the values of
// Secrets masked, the images in them, and the rights that the operator needs for them. crd prints the
// CustomResourceDefinitions that the program was built with.
//
// # Defaults
//
// The finalizer is <name>/operator, unless Options.Reconciler has another one. Metrics are served
// on :8080 and probes on :8081 (/healthz and /readyz). With -leader-elect one of several replicas
// is elected, by a lock that also fences the other replicas, see component.NewLeaderLock. With
// -watch-namespace the operator reads and writes components of these namespaces only. With the
// option Namespaced of the reconciler this is the operator's namespace only.
//
// Who needs another manager uses package component and controller-runtime directly;
// Options.SetUp adds the reconciler to any manager.
package operator
