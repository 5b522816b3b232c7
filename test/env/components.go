// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"strconv"
)

// startComponents starts what acts on objects. They need not wait for one another;
// none elects a leader, because there is only one of each.
func (e *Environment) startComponents(context.Context) error {
	if !e.options.Cluster {
		return nil
	}
	for name, args := range map[string][]string{
		"kube-controller-manager": e.controllerManagerArgs(),
		"kube-scheduler":          e.schedulerArgs(),
		"podsim":                  e.podsimArgs(),
	} {
		p, err := e.start(name, args...)
		if err != nil {
			return err
		}
		e.components = append(e.components, p)
	}
	return nil
}

func (e *Environment) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + e.file("kube-controller-manager"),
		"--leader-elect=false",
		"--secure-port=0", // serves nothing, so needs no port
		"--root-ca-file=" + e.file("ca.crt"),
		"--service-account-private-key-file=" + e.file("service-accounts.key"),
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--controller-start-interval=0s",
		"--min-resync-period=12h",
		// A volume is bound when its claim changes; the period matters only to a lost race.
		"--pvclaimbinder-sync-period=1s",
		"--horizontal-pod-autoscaler-sync-period=2s",
		"--concurrent-gc-syncs=20",
		"--concurrent-namespace-syncs=10",
		"--terminated-pod-gc-threshold=0",
	}
}

func (e *Environment) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + e.file("kube-scheduler"),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}
}

func (e *Environment) podsimArgs() []string {
	return []string{
		"--kubeconfig=" + e.file("podsim"),
		"--nodes=" + strconv.Itoa(e.options.Nodes),
	}
}
