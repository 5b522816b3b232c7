// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// clusterUID identifies the cluster that components live in. It is read with the
// identity of the operator, because others rarely have the right to.
type clusterUID struct {
	client client.Client
	known  atomic.Pointer[apitypes.UID]
}

func newClusterUID(c client.Client, s settings) *clusterUID {
	u := &clusterUID{client: c}
	if s.clusterUID != "" {
		u.known.Store(&s.clusterUID)
	}
	return u
}

func (u *clusterUID) get(ctx context.Context) (apitypes.UID, error) {
	if known := u.known.Load(); known != nil {
		return *known, nil
	}
	namespace := &corev1.Namespace{}
	err := u.client.Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace)
	switch {
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("read the namespace kube-system, whose uid identifies the cluster: %w; "+
			"give the operator the right to get it, or set the option ClusterUID", err)
	case err != nil:
		return "", fmt.Errorf("read the namespace kube-system, whose uid identifies the cluster: %w", err)
	case namespace.UID == "":
		return "", errors.New("the namespace kube-system, whose uid identifies the cluster, has no uid")
	}
	u.known.Store(&namespace.UID)
	return namespace.UID, nil
}

// homeTarget is a target in the cluster that components live in.
type homeTarget struct {
	cluster.Target
	uid *clusterUID
}

// UID implements cluster.Target.
func (t homeTarget) UID(ctx context.Context) (apitypes.UID, error) { return t.uid.get(ctx) }
