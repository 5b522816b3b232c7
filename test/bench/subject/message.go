// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"time"

	"k8s.io/client-go/rest"
)

// What a subject can be asked to do. Connect and Take are known to all; Apply to
// Terminated are work for a program that does not watch; Idle and PlanDeletion are for an operator.
const (
	// Connect names the API server and the objects to work on. It comes first.
	Connect = "connect"
	// Take asks for the usage since the last time.
	Take = "take"
	// Profile starts a profile of the processor time, which ends with the next Take.
	Profile = "profile"
	// Idle waits until the operator has nothing to do.
	Idle = "idle"

	// Apply makes the objects be as ordered.
	Apply = "apply"
	// Healthy waits until what was applied is ready, in the subject's own way.
	Healthy = "healthy"
	// Delete deletes the objects.
	Delete = "delete"
	// Terminated waits until what was deleted is gone, in the subject's own way.
	Terminated = "terminated"

	// Plan finds out what it takes to make the objects be as ordered, and writes nothing.
	Plan = "plan"
	// PlanDeletion finds out what it takes to delete the objects, and writes nothing.
	PlanDeletion = "plan-deletion"
)

// LeadershipLost is the exit code of an operator that is not the leader any more.
const LeadershipLost = 3

// Order is a line to a subject.
type Order struct {
	Do string
	// With Connect.
	Cluster   *Cluster `json:",omitempty"`
	Namespace string   `json:",omitempty"`
	// Lease, with Connect, is the name of the lease by which operators elect a leader, in
	// the namespace; empty leaves that out. An operator that elects returns before it
	// leads, and its process ends with LeadershipLost when it does not lead any more.
	Lease string `json:",omitempty"`
	// Chart, with Connect, is the version of the chart that an operator brings.
	Chart string `json:",omitempty"`
	// MaxUnavailable, with Connect, is the option Rollout.MaxUnavailable of an operator; empty leaves the option out.
	MaxUnavailable string `json:",omitempty"`
	// With Apply, Delete, Plan and PlanDeletion.
	Objects Objects
	// Changes, with Plan and PlanDeletion, is how many changes there must be; another number is
	// an error.
	Changes int `json:",omitempty"`
	// Collect, with Take, collects the garbage to measure the heap that is in use.
	Collect bool `json:",omitempty"`
	// Profile is the file that a profile is written to: with Take that of the heap, with Profile and Connect that of the processor time.
	Profile string `json:",omitempty"`
	// Reconciles, with Idle, is how many reconciles must have ended.
	Reconciles int `json:",omitempty"`
}

// Answer is a line from a subject.
type Answer struct {
	// Error is what went wrong; empty if nothing did.
	Error string `json:",omitempty"`
	// Usage answers Take.
	Usage *Usage `json:",omitempty"`
	// Done is when the subject had done its last work, which with Idle is
	// before it could report that.
	Done time.Time
}

// Cluster is an API server and a user.
type Cluster struct {
	Host          string
	CA, Cert, Key []byte
}

// ClusterOf returns what a subject needs of a configuration.
func ClusterOf(config *rest.Config) *Cluster {
	return &Cluster{Host: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData}
}

// Config returns the configuration of a client. It is not throttled on the client's side.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host: c.Host, QPS: -1, Burst: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, CertData: c.Cert, KeyData: c.Key},
	}
}
