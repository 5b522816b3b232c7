// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// askAgain is after how long it is asked again whether Secrets may be kept.
const askAgain = 10 * time.Minute

// refused tells whether the operator may not list or create the Secrets that the
// record would move to. It is asked before the record says that there may be some:
// from then on they are looked for.
func (b *Book) refused(ctx context.Context) (bool, error) {
	namespace := b.namespaces()[0]
	l := b.ledger
	l.mu.Lock()
	since, known := l.refused[namespace]
	l.mu.Unlock()
	if known && time.Since(since) < askAgain {
		return true, nil
	}
	_, err := l.list(ctx, b.component, []string{namespace})
	if err == nil {
		name := l.naming(b.component).name(b.nextGeneration(), 0)
		err = l.options.Client.Create(ctx, l.newSecret(b.component, namespace, name, 0, nil), client.DryRunAll, client.FieldOwner(l.options.FieldOwner))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		l.refused[namespace] = time.Now()
		logf.FromContext(ctx).Error(err, "the inventory stays in the status, although it is large: grant the operator the rights on Secrets", "namespace", namespace)
		return true, nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsAlreadyExists(err):
		return false, fmt.Errorf("find out whether Secrets may be kept in namespace %s: %w", namespace, err)
	}
	delete(l.refused, namespace)
	return false, nil
}
