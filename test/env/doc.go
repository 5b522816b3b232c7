// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package env starts and stops a real Kubernetes control plane: for tests, and
// for programs such as the demo.
//
// There are two sizes. The small one is etcd and kube-apiserver: everything the
// server itself knows is real (admission, validation, server-side apply, RBAC,
// custom resources), but nothing acts on the objects. With [Options.Cluster] there
// are also kube-controller-manager, kube-scheduler and a pod simulator, so that
// Deployments roll out, Jobs complete, volumes bind and namespaces go away (at
// upstream's own delays: after 5 seconds, or 15 if they held pods).
//
// The programs come from a folder that [Assets] finds; `make controlplane` fills it.
//
// In tests, share one environment among the tests of a package, because starting
// one takes two seconds:
//
//	func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }
//
//	func TestSomething(t *testing.T) {
//		config := env.Shared(t).Config()
//		...
//	}
//
// or give a test its own with [New]. Everything else calls [Start] and Stop.
//
// An environment listens on loopback only, on free ports, and keeps all it writes
// in one temporary folder; so any number can run side by side. Its processes do
// not outlive the process that started them, however that one ends (see guard.go).
// When something fails, the logs are kept, and the error names the folder.
package env
