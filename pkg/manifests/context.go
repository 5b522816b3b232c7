// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/cluster"
)

// key is the type of the keys of all context values of this package; its text
// is what the error says when the value is missing.
type key string

const (
	reconcilerNameKey     key = "reconciler name"
	clientKey             key = "client of the target cluster"
	targetKey             key = "target cluster"
	localClientKey        key = "client of the local cluster"
	componentKey          key = "component"
	componentNameKey      key = "component name"
	componentNamespaceKey key = "component namespace"
	componentDigestKey    key = "component digest"
	componentRevisionKey  key = "component revision"
	installationKey       key = "installation of the component"
	rollbackHooksKey      key = "rollback hooks"
	previewKey            key = "preview"
	measuredKey           key = "measurement of the result"
)

func valueFrom[T any](ctx context.Context, k key) (T, error) {
	value, ok := ctx.Value(k).(T)
	if !ok {
		return value, fmt.Errorf("the context holds no %s", string(k))
	}
	return value, nil
}

// WithReconcilerName returns a context that holds the name of the reconciler.
func WithReconcilerName(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, reconcilerNameKey, name)
}

// ReconcilerNameFromContext returns the name of the reconciler, which is the
// prefix of its annotations; it fails if the context holds none.
func ReconcilerNameFromContext(ctx context.Context) (string, error) {
	return valueFrom[string](ctx, reconcilerNameKey)
}

// WithClient returns a context that holds the client of the target cluster.
func WithClient(ctx context.Context, c client.Client) context.Context {
	return context.WithValue(ctx, clientKey, c)
}

// ClientFromContext returns the client of the cluster that the dependent
// objects go to, with the user that writes them; it fails if the
// context holds none.
func ClientFromContext(ctx context.Context) (client.Client, error) {
	return valueFrom[client.Client](ctx, clientKey)
}

// WithTarget returns a context that holds the target cluster.
func WithTarget(ctx context.Context, target cluster.Target) context.Context {
	return context.WithValue(ctx, targetKey, target)
}

// TargetFromContext returns the cluster that the dependent objects go to, with
// the user that writes them; it fails if the context holds none.
func TargetFromContext(ctx context.Context) (cluster.Target, error) {
	return valueFrom[cluster.Target](ctx, targetKey)
}

// WithLocalClient returns a context that holds the client of the local cluster.
func WithLocalClient(ctx context.Context, c client.Client) context.Context {
	return context.WithValue(ctx, localClientKey, c)
}

// LocalClientFromContext returns the client of the cluster that the component
// lives in; it fails if the context holds none.
func LocalClientFromContext(ctx context.Context) (client.Client, error) {
	return valueFrom[client.Client](ctx, localClientKey)
}

// WithComponent returns a context that holds the component.
func WithComponent(ctx context.Context, component client.Object) context.Context {
	return context.WithValue(ctx, componentKey, component)
}

// ComponentFromContext returns the component that objects are generated for,
// which must not be changed; it fails if the context holds none.
func ComponentFromContext(ctx context.Context) (client.Object, error) {
	return valueFrom[client.Object](ctx, componentKey)
}

// WithComponentName returns a context that holds the name of the component.
func WithComponentName(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, componentNameKey, name)
}

// ComponentNameFromContext returns the name of the component, which may differ
// from the name of the deployment; it fails if the context holds none.
func ComponentNameFromContext(ctx context.Context) (string, error) {
	return valueFrom[string](ctx, componentNameKey)
}

// WithComponentNamespace returns a context that holds the namespace of the component.
func WithComponentNamespace(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, componentNamespaceKey, namespace)
}

// ComponentNamespaceFromContext returns the namespace of the component, which
// may differ from the namespace of the deployment and is empty if the component
// is cluster-scoped; it fails if the context holds none.
func ComponentNamespaceFromContext(ctx context.Context) (string, error) {
	return valueFrom[string](ctx, componentNamespaceKey)
}

// WithComponentDigest returns a context that holds the digest of the component.
func WithComponentDigest(ctx context.Context, digest string) context.Context {
	return context.WithValue(ctx, componentDigestKey, digest)
}

// ComponentDigestFromContext returns the digest over everything that the
// objects depend on; it fails if the context holds none.
func ComponentDigestFromContext(ctx context.Context) (string, error) {
	return valueFrom[string](ctx, componentDigestKey)
}

// WithComponentRevision returns a context that holds the revision of the component.
func WithComponentRevision(ctx context.Context, revision int64) context.Context {
	return context.WithValue(ctx, componentRevisionKey, revision)
}

// ComponentRevisionFromContext returns the revision of the component, which
// counts from 1 and grows with every change of the digest; it fails if the
// context holds none.
func ComponentRevisionFromContext(ctx context.Context) (int64, error) {
	return valueFrom[int64](ctx, componentRevisionKey)
}

// WithComponentInstallation returns a context that says whether the revision of the
// component is its installation or an upgrade.
func WithComponentInstallation(ctx context.Context, installation bool) context.Context {
	return context.WithValue(ctx, installationKey, installation)
}

// IsComponentInstallation reports whether the revision of the component is its
// installation: no earlier revision was applied and ready. If the context does not say
// so, the first revision is, and so is a context that holds no revision.
func IsComponentInstallation(ctx context.Context) bool {
	if installation, err := valueFrom[bool](ctx, installationKey); err == nil {
		return installation
	}
	revision, err := ComponentRevisionFromContext(ctx)
	return err != nil || revision <= 1
}

// WithRollbackHooks returns a context that says whether a generator also returns the objects
// that are applied only when the revision is rolled back to. They have the annotation run-on with
// the value rollback.
func WithRollbackHooks(ctx context.Context, included bool) context.Context {
	return context.WithValue(ctx, rollbackHooksKey, included)
}

// IncludesRollbackHooks reports whether a generator also returns the objects that are applied
// only when the revision is rolled back to; false if the context does not say so.
func IncludesRollbackHooks(ctx context.Context) bool {
	included, _ := valueFrom[bool](ctx, rollbackHooksKey)
	return included
}

// WithPreview returns a context of a preview: what is generated is not applied.
func WithPreview(ctx context.Context) context.Context {
	return context.WithValue(ctx, previewKey, true)
}

// IsPreview reports whether what is generated is only shown, and not applied. A generator or a
// hook must change nothing then.
func IsPreview(ctx context.Context) bool {
	preview, _ := valueFrom[bool](ctx, previewKey)
	return preview
}
