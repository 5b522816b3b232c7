// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package podsim stands in for everything of a cluster that lies outside its
// control plane: nodes, container runtimes, storage and load balancers. No
// container is ever run; the objects only go through the changes that a real
// cluster would make, in milliseconds.
//
//   - It registers nodes, Ready and large, and keeps their leases.
//   - Pods bound to its nodes get addresses and become Running and ready after a
//     moment. Pods that are meant to end (restart policy OnFailure or Never, so
//     those of Jobs) end with success. Deleted pods terminate and go.
//   - Secrets and ConfigMaps, and their keys, that variables and mounted volumes of a
//     pod refer to have to exist when its containers start. Otherwise containers wait
//     with CreateContainerConfigError, or the pod with an event FailedMount, until at
//     most a second after the objects appear. Containers that run go on without.
//     Pull secrets that do not exist are an event only.
//   - Containers that go on running say that they were started an hour before.
//   - Claims of its storage classes get volumes: "standard", the default, at once;
//     "standard-wait" when a pod that uses the claim is scheduled.
//   - Services of type LoadBalancer get an address.
//   - Logs are served to the API server, as a kubelet does, on loopback.
//
// Annotations on a pod make it misbehave:
//
//	podsim.corbel.run/ready-after: 5s           ready only so long after its start
//	podsim.corbel.run/never-ready: "true"       runs, is never ready
//	podsim.corbel.run/waiting: ErrImagePull     containers do not start, for this reason
//	podsim.corbel.run/message: it is gone       what the state of such containers says
//	podsim.corbel.run/exit-code: "1"            containers end with this code
//	podsim.corbel.run/exit-code: "setup=1"      only this one does, which may be an init container;
//	                                            then reason and run-for are those of this one, too
//	podsim.corbel.run/reason: OOMKilled         why they end
//	podsim.corbel.run/log: it is broken         what the log of each container holds
//	podsim.corbel.run/run-for: 2s               containers end after this time
//	podsim.corbel.run/terminate-after: 3s       time to terminate, at most the grace period
//
// A container waits with ImagePullBackOff if its image has the tag "broken", or
// "does-not-exist" in its name.
//
// A container that ends is started again after a second, after two, and so on up to ten:
// a kubelet waits ten times as long, and up to five minutes.
//
// Init containers end with success at once. Claims and service accounts that do not exist
// are found by the scheduler and the API server, which are real.
//
// What a pod's status should be is decided by functions of the pod, its past, the time and
// the objects that it refers to (behaviour.go, containers.go, references.go, status.go); the
// rest watches and writes.
package podsim
