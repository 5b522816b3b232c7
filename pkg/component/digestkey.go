// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	digestKeySuffix = "-digest-key"
	digestKeyField  = "key"
	digestKeyBytes  = 32
)

// digestKey is the key of all digests that secrets may enter: who can read a status
// must not be able to try out what a secret might be. It is kept in a secret in the
// namespace of the operator, so that digests outlive the process.
type digestKey struct {
	client client.Client // reads from the server
	secret client.ObjectKey
	turn   chan struct{} // held by who asks the server
	key    atomic.Pointer[[]byte]
}

func newDigestKey(c client.Client, s settings) *digestKey {
	return &digestKey{
		client: c,
		secret: client.ObjectKey{Namespace: s.operatorNamespace, Name: s.name + digestKeySuffix},
		turn:   make(chan struct{}, 1),
	}
}

// known returns the key if it was read.
func (k *digestKey) known() []byte {
	if key := k.key.Load(); key != nil {
		return *key
	}
	return nil
}

// get reads the key; the first time ever it makes it. A process reads it once: with
// another key the record says no more of which manifests the objects were made.
func (k *digestKey) get(ctx context.Context) ([]byte, error) {
	if key := k.known(); key != nil {
		return key, nil
	}
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if key := k.known(); key != nil {
		return key, nil
	}
	key, err := k.readOrCreate(ctx)
	if err != nil {
		return nil, k.explain(err)
	}
	k.key.Store(&key)
	return key, nil
}

func (k *digestKey) readOrCreate(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	key, err := k.read(ctx)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	if err := k.create(ctx); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	// What is on the server counts: another process may have been faster.
	return k.read(ctx)
}

func (k *digestKey) explain(err error) error {
	err = fmt.Errorf("Secret %s, which holds the key of the digests: %w", k.secret, err)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the operator needs the rights get and create for secrets in its namespace", err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w; create the namespace, or set the option OperatorNamespace to one that exists", err)
	}
	return err
}

func (k *digestKey) read(ctx context.Context) ([]byte, error) {
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

func (k *digestKey) create(ctx context.Context) error {
	key := make([]byte, digestKeyBytes)
	rand.Read(key) // never fails
	return k.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.secret.Namespace, Name: k.secret.Name},
		Immutable:  new(true),
		Data:       map[string][]byte{digestKeyField: key},
	})
}
