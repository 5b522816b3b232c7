// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure runs subjects through the life of one component on a real API server
// and reports requests, time, CPU and memory. The subjects run in turn, each has a process
// of its own, and the end of each step is observed from outside, by a watch.
//
// Each round begins with another subject, in a new namespace, and a namespace must be empty when its round ends. Requests are
// counted in the process that sends them, without watches, events and leases; requests of kubectl and Helm are counted in the
// audit log. Requests that Corbel sends after the component is Ready count as well. A fleet is deleted after its operator has
// led for 80 seconds. The commands run in one process for each component, four at a time.
package measure
