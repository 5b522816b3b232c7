// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"cmp"
	"fmt"
	"os"
	"time"
)

// Options choose what an environment consists of. The zero value is etcd and
// kube-apiserver, nothing recorded.
type Options struct {
	// Cluster adds kube-controller-manager, kube-scheduler and the pod simulator,
	// and the admission of service accounts, which needs the former.
	Cluster bool

	// Nodes is how many nodes the pod simulator registers. Default 2. Only with Cluster.
	Nodes int

	// Servers is how many API servers there are, each with a member of etcd that syncs its
	// writes to the disk. Default 1, without syncs.
	Servers int

	// AuditLog records every request that the API server answers, for
	// [Environment.AuditEvents].
	AuditLog bool

	// AuditBodies lets the audit log hold what was sent and answered with every
	// write, but for those of the control plane's own programs. Only with AuditLog.
	AuditBodies bool

	// APIServerArgs are appended to the arguments of kube-apiserver.
	APIServerArgs []string

	// Assets is the folder of the programs. Default: what [Assets] finds.
	Assets string

	// Logf reports where logs were kept. Default: a line on standard error.
	Logf func(format string, args ...any)

	// StartTimeout bounds Start, and each restart of the API server. Default 2 minutes:
	// a start takes seconds, but not on a machine that is busy compiling.
	StartTimeout time.Duration
}

func (o Options) withDefaults() (Options, error) {
	o.Nodes, o.Servers = cmp.Or(o.Nodes, 2), cmp.Or(o.Servers, 1)
	o.StartTimeout = cmp.Or(o.StartTimeout, 2*time.Minute)
	if o.Logf == nil {
		o.Logf = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	}
	programs := programsFor(o.Cluster)
	if o.Assets != "" {
		return o, checkAssets(o.Assets, programs)
	}
	assets, err := Assets(programs...)
	o.Assets = assets
	return o, err
}
