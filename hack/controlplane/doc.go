// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Command controlplane is a whole Kubernetes control plane in one file: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and a pod
// simulator. Which of them it is follows from the name it was started by, or,
// if that name says nothing, from its first argument:
//
//	ln -s controlplane kube-apiserver && ./kube-apiserver --help
//	./controlplane kube-apiserver --help
//
// The tests and the demo of this repository run against it, so that a machine
// with nothing but Go and make has a real API server. The programs are the
// upstream ones, linked unchanged; one binary instead of five saves most of the
// size, because they share most of their code.
//
// This is a module of its own: k8s.io/kubernetes is no dependency that users of
// the library should ever see. Its go.mod requires the newest version of Kubernetes
// that the tests know; the folder versions has the requirements of the others, for
// go build -modfile. The sources are the same for all.
package main
