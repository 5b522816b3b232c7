// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
)

// Half a minute without renewal is what the node controller tolerates at the least.
const (
	leaseDuration = 40 * time.Second
	leaseRenewal  = 10 * time.Second
)

// nodes registers our nodes, also after one was deleted, and keeps their leases.
type nodes struct {
	client kubernetes.Interface
	lister corelisters.NodeLister
	names  []string
	port   int32 // where logs are served
}

func newNodes(s *simulator, port int32) *nodes {
	n := &nodes{client: s.client, lister: s.informers.Core().V1().Nodes().Lister(), port: port}
	for i := range s.options.nodes {
		n.names = append(n.names, fmt.Sprintf("node-%d", i))
	}
	return n
}

// ours reports whether a node is simulated, and at which address it is.
func (n *nodes) ours(name string) (address string, ok bool) {
	i := slices.Index(n.names, name)
	return nodeAddress(i), i >= 0
}

func (n *nodes) handle(ctx context.Context, name string) (time.Duration, error) {
	i := slices.Index(n.names, name)
	if i < 0 {
		return 0, nil
	}
	node, err := n.lister.Get(name)
	switch {
	case apierrors.IsNotFound(err):
		_, err = n.client.CoreV1().Nodes().Create(ctx, newNode(i, name, n.port, time.Now()), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return 0, nil // its event is on the way
		}
	case err == nil && (!nodeReady(node) || node.Status.DaemonEndpoints.KubeletEndpoint.Port != n.port):
		// We were away, perhaps so long that the node was given up.
		node = node.DeepCopy()
		node.Status = newNode(i, name, n.port, time.Now()).Status
		_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	}
	return 0, err
}

// keepLeases renews the leases of all our nodes until the context ends.
func (n *nodes) keepLeases(ctx context.Context) {
	ticker := time.NewTicker(leaseRenewal)
	defer ticker.Stop()
	for {
		for _, name := range n.names {
			if err := n.renew(ctx, name); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "Renewing the lease failed", "node", name)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (n *nodes) renew(ctx context.Context, name string) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	create := apierrors.IsNotFound(err)
	if err != nil && !create {
		return err
	}
	if create {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	lease.Spec.HolderIdentity = &name
	lease.Spec.LeaseDurationSeconds = new(int32(leaseDuration.Seconds()))
	lease.Spec.RenewTime = new(metav1.NowMicro())
	if create {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}
