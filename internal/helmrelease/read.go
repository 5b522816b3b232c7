// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// SecretType is the type of the Secrets of records.
	SecretType corev1.SecretType = "helm.sh/release.v1"
	// Entry is the key of the release in a record.
	Entry = "release"
)

// A NotFoundError means that there is no record of a revision or, if that is 0, of a release.
type NotFoundError struct{ Reference }

// Error names the objects that were looked for.
func (e *NotFoundError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("there is no Helm release %s in namespace %s", e.Name, e.Namespace)
	}
	return fmt.Sprintf("%s has no revision %d: there is neither a Secret nor a ConfigMap %s in namespace %s", e.Title(), e.Revision, e.RecordName(), e.Namespace)
}

// An UnusableError explains why a revision cannot be adopted.
type UnusableError struct {
	Reference
	Err error
}

// Error names the revision.
func (e *UnusableError) Error() string {
	return fmt.Sprintf("revision %d of %s cannot be adopted: %v", e.Revision, e.Title(), e.Err)
}

// Unwrap returns the reason alone.
func (e *UnusableError) Unwrap() error { return e.Err }

// Read reads a revision that can be adopted: it is deployed, and there is no later one. The error is a NotFoundError,
// an UnusableError, or the error of a request. It sends two requests for a record in a Secret, and four for one in
// a ConfigMap.
func Read(ctx context.Context, c client.Reader, r Reference) (*Release, error) {
	kind, text, err := recordOf(ctx, c, r)
	if err != nil {
		return nil, err
	}
	unusable := func(format string, arguments ...any) (*Release, error) {
		return nil, &UnusableError{Reference: r, Err: fmt.Errorf(format, arguments...)}
	}
	release, err := Decode(text)
	switch {
	case err != nil:
		return unusable("%w", err)
	case release.Reference != r:
		return unusable("its record is about revision %d of %s", release.Revision, release.Title())
	case release.Status == "superseded":
		return unusable("it is superseded by a later one")
	case strings.HasPrefix(release.Status, "pending-"):
		return unusable("it is %s: Helm is at work, or was interrupted; it must be deployed, and \"helm rollback\" makes it so", release.Status)
	case release.Status != StatusDeployed:
		return unusable("it is %s; it must be deployed", release.Status)
	}
	next := r
	next.Revision++
	later := &metav1.PartialObjectMetadata{}
	later.SetGroupVersionKind(kind)
	switch err := c.Get(ctx, client.ObjectKey{Namespace: next.Namespace, Name: next.RecordName()}, later); {
	case err == nil:
		return unusable("the release has revision %d", next.Revision)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read the record of %s: %w", next.Title(), err)
	}
	return release, nil
}

// recordOf reads the record of a revision.
func recordOf(ctx context.Context, c client.Reader, r Reference) (kind schema.GroupVersionKind, text []byte, err error) {
	key := client.ObjectKey{Namespace: r.Namespace, Name: r.RecordName()}
	secret, settings := &corev1.Secret{}, &corev1.ConfigMap{}
	err = c.Get(ctx, key, secret)
	if err == nil {
		if secret.Type != SecretType {
			err = &UnusableError{Reference: r, Err: fmt.Errorf("Secret %s is not of the type %s", key, SecretType)}
		}
		return corev1.SchemeGroupVersion.WithKind("Secret"), secret.Data[Entry], err
	}
	if apierrors.IsNotFound(err) {
		err = c.Get(ctx, key, settings)
	}
	switch {
	case apierrors.IsNotFound(err):
		err = &NotFoundError{r}
	case err != nil:
		err = fmt.Errorf("read the record of %s: %w", r.Title(), err)
	case settings.Labels["owner"] != "helm":
		err = &UnusableError{Reference: r, Err: fmt.Errorf("ConfigMap %s is not one of Helm", key)}
	}
	return corev1.SchemeGroupVersion.WithKind("ConfigMap"), []byte(settings.Data[Entry]), err
}
