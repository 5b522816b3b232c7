// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/cluster"
)

const (
	digestKeySuffix = "-digest-key"
	digestKeyField  = "key"
	digestKeyBytes  = 32
	// digestKeyTimeout bounds the requests for the key.
	digestKeyTimeout = 30 * time.Second
)

// DigestKeySecret returns the name of the Secret with the key of the digests of a reconciler.
func DigestKeySecret(operatorNamespace, reconcilerName string) client.ObjectKey {
	return client.ObjectKey{Namespace: operatorNamespace, Name: reconcilerName + digestKeySuffix}
}

// DigestKey is the key of all digests that secrets may enter: a reader of a status must not be able
// to try out guesses of a secret. It is kept in a Secret in the namespace of the operator, so that
// digests outlive the process.
type DigestKey struct {
	client client.Client // reads from the server
	secret client.ObjectKey
	slot   chan struct{} // for one request at a time; unlike a mutex it ends with the context
	key    atomic.Pointer[[]byte]
}

// NewDigestKey returns the key that is kept in the Secret. The client reads from the server.
func NewDigestKey(c client.Client, secret client.ObjectKey) *DigestKey {
	return &DigestKey{client: c, secret: secret, slot: make(chan struct{}, 1)}
}

// Cached returns the key if it was read, and nil otherwise.
func (k *DigestKey) Cached() []byte {
	if key := k.key.Load(); key != nil {
		return *key
	}
	return nil
}

// Get returns the key, and creates it the first time ever. A process reads it once: with another
// key the inventory does not tell any more of which manifests the objects were made.
func (k *DigestKey) Get(ctx context.Context) ([]byte, error) {
	if key := k.Cached(); key != nil {
		return key, nil
	}
	select {
	case k.slot <- struct{}{}:
		defer func() { <-k.slot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if key := k.Cached(); key != nil {
		return key, nil
	}
	key, err := k.readOrCreate(ctx)
	if err != nil {
		return nil, k.explain(err)
	}
	k.key.Store(&key)
	return key, nil
}

func (k *DigestKey) readOrCreate(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, digestKeyTimeout)
	defer cancel()
	key, err := k.read(ctx)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	if err := k.create(ctx); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	// The key on the server counts: another process may have been faster.
	return k.read(ctx)
}

func (k *DigestKey) explain(err error) error {
	err = fmt.Errorf("Secret %s, which holds the key of the digests: %w", k.secret, err)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the operator needs the rights get and create for secrets in its namespace", err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w; create the namespace, or set the option OperatorNamespace to one that exists", err)
	}
	return err
}

func (k *DigestKey) read(ctx context.Context) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := k.client.Get(ctx, k.secret, secret); err != nil {
		return nil, err
	}
	key := secret.Data[digestKeyField]
	if len(key) != digestKeyBytes {
		return nil, fmt.Errorf("the key %s has %d bytes, not %d: delete the secret to get a new one", digestKeyField, len(key), digestKeyBytes)
	}
	return key, nil
}

func (k *DigestKey) create(ctx context.Context) error {
	key := make([]byte, digestKeyBytes)
	rand.Read(key) // never fails
	return k.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.secret.Namespace, Name: k.secret.Name},
		Immutable:  new(true),
		Data:       map[string][]byte{digestKeyField: key},
	})
}

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
