// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/cluster"
)

// ClusterUID identifies the local cluster by the uid of a namespace. It is read with the identity
// of the operator, because other users rarely have the right to.
type ClusterUID struct {
	client    client.Client
	namespace string
	known     atomic.Pointer[apitypes.UID]
}

// KubeSystem is the namespace that identifies a cluster for everyone who may read it.
const KubeSystem = "kube-system"

// NewClusterUID returns a ClusterUID. It reads the uid of the namespace with the client, unless
// one is configured.
func NewClusterUID(c client.Client, namespace string, configured apitypes.UID) *ClusterUID {
	u := &ClusterUID{client: c, namespace: namespace}
	if configured != "" {
		u.known.Store(&configured)
	}
	return u
}

func (u *ClusterUID) get(ctx context.Context) (apitypes.UID, error) {
	if known := u.known.Load(); known != nil {
		return *known, nil
	}
	namespace := &corev1.Namespace{}
	err := u.client.Get(ctx, client.ObjectKey{Name: u.namespace}, namespace)
	switch {
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("read the uid of the namespace %s, which identifies the cluster: %w; "+
			"give the operator the right to get it, or set the option ClusterUID", u.namespace, err)
	case err != nil:
		return "", fmt.Errorf("read the uid of the namespace %s, which identifies the cluster: %w", u.namespace, err)
	case namespace.UID == "":
		return "", fmt.Errorf("the namespace %s has no uid to identify the cluster by", u.namespace)
	}
	u.known.Store(&namespace.UID)
	return namespace.UID, nil
}

// localTarget is a target in the local cluster.
type localTarget struct {
	cluster.Target
	uid *ClusterUID
}

// UID implements cluster.Target.
func (t localTarget) UID(ctx context.Context) (apitypes.UID, error) { return t.uid.get(ctx) }

// remoteTarget is a target that knows the cluster that its components are in.
type remoteTarget struct {
	cluster.Target
	home *ClusterUID
}

// HomeUID identifies that cluster.
func (t remoteTarget) HomeUID(ctx context.Context) (apitypes.UID, error) { return t.home.get(ctx) }
