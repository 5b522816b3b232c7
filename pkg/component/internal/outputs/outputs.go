// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package outputs publishes the outputs of components: plain outputs in the status, and secret outputs in a Secret beside the component.
package outputs

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// Publisher publishes outputs. It remembers nothing: the status says which values the Secret has.
type Publisher struct {
	Self *identity.Operator
	// Local reads from the server and writes, with the identity of the operator.
	Local client.Client
	// Key returns the key of the digest in the status.
	Key func(context.Context) ([]byte, error)
	// Leading returns an error if another process leads.
	Leading func() error
	// Watch requeues a component when the Secret changes, which the component has written.
	Watch func(component client.ObjectKey, secret informer.Reference)
}

// keyOf returns the key of the Secret with the secret outputs of a component.
func keyOf(obj client.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: obj.GetNamespace(), Name: vocabulary.OutputsSecret(obj.GetName())}
}

// Publish writes the secret outputs into the Secret if the status does not say that they are there, and all outputs into the status. It
// keeps the former value of an output with an object that was not read. It writes nothing but the status if nothing has changed. It
// commits the status before it creates the Secret.
func (p *Publisher) Publish(ctx context.Context, obj identity.Component, found []reconciler.Output, commit func(context.Context) error) error {
	status := obj.GetStatus()
	plain, secret := map[string]string{}, map[string][]byte{}
	unknown, declared := false, false // secret outputs
	for _, output := range found {
		before, published := status.Outputs[output.Name]
		declared = declared || output.Secret || slices.Contains(status.SecretOutputs, output.Name)
		switch {
		case output.Unknown && slices.Contains(status.SecretOutputs, output.Name):
			unknown = true
		case output.Unknown && published:
			plain[output.Name] = before
		case output.Found && output.Secret:
			secret[output.Name] = []byte(output.Value)
		case output.Found:
			plain[output.Name] = output.Value
		}
	}
	if status.Outputs = plain; len(plain) == 0 {
		status.Outputs = nil
	}
	if unknown {
		return nil
	}
	if !declared {
		return p.Erase(ctx, obj)
	}
	if len(secret) == 0 && len(status.SecretOutputs) == 0 {
		return nil // nothing was found yet
	}
	sum, err := p.digest(ctx, secret)
	if err != nil {
		return err
	}
	if len(status.SecretOutputs) == 0 {
		status.SecretOutputs = slices.Sorted(maps.Keys(secret))
		if err := commit(ctx); err != nil {
			return err
		}
	}
	if sum != status.OutputsDigest {
		written, err := p.write(ctx, obj, secret)
		if err != nil {
			return fmt.Errorf("write Secret %s with the secret outputs: %w", keyOf(obj), err)
		}
		p.Watch(client.ObjectKeyFromObject(obj), referenceTo(written))
	}
	status.SecretOutputs, status.OutputsDigest = slices.Sorted(maps.Keys(secret)), sum
	return nil
}

func (p *Publisher) digest(ctx context.Context, values map[string][]byte) (string, error) {
	key, err := p.Key(ctx)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name, string(values[name]))
	}
	return digest.Hasher{Key: key}.Combine(parts...), nil
}

// referenceTo returns a reference to a Secret in the version that is known.
func referenceTo(secret client.Object) informer.Reference {
	return informer.Reference{
		Type: corev1.SchemeGroupVersion.WithResource("secrets"), Namespace: secret.GetNamespace(), Name: secret.GetName(), ResourceVersion: secret.GetResourceVersion(),
	}
}

// write makes the Secret have the values, and no others.
func (p *Publisher) write(ctx context.Context, obj identity.Component, values map[string][]byte) (*corev1.Secret, error) {
	key := keyOf(obj)
	if key.Namespace == "" {
		return nil, fmt.Errorf("%s has no namespace for a Secret; its outputs must not be secret", p.Self.Title(obj))
	}
	if len(key.Name) > validation.DNS1123SubdomainMaxLength {
		return nil, fmt.Errorf("the Secret of the secret outputs would be named %s, and a name has at most %d characters; the name of %s must be shorter",
			key.Name, validation.DNS1123SubdomainMaxLength, p.Self.Title(obj))
	}
	if err := p.Leading(); err != nil {
		return nil, err
	}
	apiVersion, kind := p.Self.Kind.ToAPIVersionAndKind()
	owners := []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: obj.GetName(), UID: obj.GetUID()}}
	create := func() (*corev1.Secret, error) {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, OwnerReferences: owners},
			Type:       p.secretType(), Data: values,
		}
		return secret, p.Local.Create(ctx, secret, client.FieldOwner(p.Self.FieldOwner))
	}
	if obj.GetStatus().OutputsDigest == "" {
		if secret, err := create(); !apierrors.IsAlreadyExists(err) {
			return secret, err
		}
	}
	secret := &corev1.Secret{}
	err := p.Local.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return create()
	case err != nil:
		return nil, err
	case !p.owns(obj, secret):
		return nil, fmt.Errorf("Secret %s exists and does not belong to %s; delete or rename the Secret, or rename the component", key, p.Self.Title(obj))
	case maps.EqualFunc(secret.Data, values, bytes.Equal) && slices.Equal(secret.OwnerReferences, owners):
		return secret, nil
	}
	before := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
	secret.Data, secret.OwnerReferences = values, owners
	return secret, p.Local.Patch(ctx, secret, before, client.FieldOwner(p.Self.FieldOwner))
}

// secretType is the type of all Secrets of outputs. The API server does not let it change.
func (p *Publisher) secretType() corev1.SecretType {
	return corev1.SecretType(p.Self.Name + "/outputs")
}

// owns reports whether a Secret belongs to the component, or to a previous component of this name, which a backup has restored.
func (p *Publisher) owns(obj client.Object, secret *corev1.Secret) bool {
	return secret.Type == p.secretType() && slices.ContainsFunc(secret.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		group, err := schema.ParseGroupVersion(owner.APIVersion)
		return err == nil && group.Group == p.Self.Kind.Group && owner.Kind == p.Self.Kind.Kind && owner.Name == obj.GetName()
	})
}

// Check reads the Secret of the secret outputs, and notes in the status if it does not have the values that were written, so that they
// are written again. It returns the version that was read; nothing if there are no secret outputs.
func (p *Publisher) Check(ctx context.Context, obj identity.Component) []informer.Reference {
	status, key := obj.GetStatus(), keyOf(obj)
	if status.OutputsDigest == "" {
		return nil
	}
	secret := &corev1.Secret{}
	err := p.Local.Get(ctx, key, secret)
	if sum, failed := p.digest(ctx, secret.Data); client.IgnoreNotFound(err) == nil && (failed != nil || sum != status.OutputsDigest || !p.owns(obj, secret)) {
		status.OutputsDigest = "" // not the names: an output with an object that is not read stays
	}
	secret.Namespace, secret.Name = key.Namespace, key.Name // also if it was not found
	return []informer.Reference{referenceTo(secret)}
}

// Erase removes the Secret of a component that has no secret outputs any more.
func (p *Publisher) Erase(ctx context.Context, obj identity.Component) error {
	status, key := obj.GetStatus(), keyOf(obj)
	if len(status.SecretOutputs) == 0 && status.OutputsDigest == "" {
		return nil
	}
	if err := p.Leading(); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	err := p.Local.Get(ctx, key, secret)
	if err == nil && p.owns(obj, secret) {
		err = p.Local.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove Secret %s of the secret outputs: %w", key, err)
	}
	status.SecretOutputs, status.OutputsDigest = nil, ""
	return nil
}
