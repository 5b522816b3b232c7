// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// suffix of the type, the label, the annotation and the finalizer of our Secrets;
// the prefix is the name of the reconciler and a slash.
const (
	suffixType      = "/inventory"
	suffixFinalizer = "/inventory"
	suffixLabel     = "/inventory-of"        // the uid of the component
	suffixOwner     = "/inventory-component" // the component in clear text
)

// secret is the cached state of a Secret of ours.
type secret struct {
	namespace, name   string
	uid               types.UID
	resourceVersion   string
	generation, index int64
	finalizers        []string
	// damaged: its content does not match the head.
	damaged bool
	// unprotected: it lacks its finalizer or owner, or the label by which it is found.
	unprotected bool
	deleting    bool
	// entries are the revisions that it holds; unknown if only metadata was read.
	entries []int64
}

// entryKey is the key of a revision in the data of a Secret.
func entryKey(revision int64) string { return "r" + strconv.FormatInt(revision, 10) }

// parseEntryKey is the inverse; false means that we did not write it.
func parseEntryKey(key string) (int64, bool) {
	digits, ok := strings.CutPrefix(key, "r")
	revision, err := strconv.ParseInt(digits, 10, 64)
	return revision, ok && err == nil && entryKey(revision) == key && isNumber(revision)
}

// entriesOf returns the revisions that a Secret holds, in order.
func entriesOf(data map[string][]byte) []int64 {
	var revisions []int64
	for key := range data {
		if revision, ok := parseEntryKey(key); ok {
			revisions = append(revisions, revision)
		}
	}
	slices.Sort(revisions)
	return revisions
}

// naming makes and reads the names of a component's Secrets.
type naming struct{ prefix string }

// maxReadable is how much of the component's name is in the names of its Secrets.
const maxReadable = 40

func (s *Store) naming(c Component) naming {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.options.Name, groupOf(c.APIVersion), c.Kind, c.Namespace, c.Name, string(c.UID)}, "\x00")))
	readable := strings.TrimRight(c.Name[:min(len(c.Name), maxReadable)], ".-")
	return naming{prefix: readable + "-inventory-" + hex.EncodeToString(sum[:5]) + "-"}
}

func (n naming) name(generation, index int64) string {
	return fmt.Sprintf("%s%d-%d", n.prefix, generation, index)
}

// parse is the inverse of name; false means that the name is not one of ours.
func (n naming) parse(name string) (generation, index int64, ok bool) {
	rest, ok := strings.CutPrefix(name, n.prefix)
	first, second, cut := strings.Cut(rest, "-")
	generation, err1 := strconv.ParseInt(first, 10, 64)
	index, err2 := strconv.ParseInt(second, 10, 64)
	ok = ok && cut && err1 == nil && err2 == nil && isNumber(generation) && n.name(generation, index) == name
	return generation, index, ok
}

func groupOf(apiVersion string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return gv.Group
}

// labelsFor are the labels by which the Secrets of a component are found.
func (s *Store) labelsFor(uid types.UID) map[string]string {
	return map[string]string{s.options.Name + suffixLabel: string(uid)}
}

func (s *Store) finalizer() string { return s.options.Name + suffixFinalizer }

// ownerReferencesTo makes the garbage collector remove the Secrets of a component that is gone.
// They do not block its deletion: the finalizer does.
func ownerReferencesTo(c Component) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name, UID: c.UID}}
}

// ownerOf reads back which component a Secret belongs to.
func (s *Store) ownerOf(object client.Object) (Component, bool) {
	uid := types.UID(object.GetLabels()[s.options.Name+suffixLabel])
	namespace, name, namespaced := strings.Cut(object.GetAnnotations()[s.options.Name+suffixOwner], "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	for _, owner := range object.GetOwnerReferences() {
		if owner.UID == uid && owner.Name == name {
			return Component{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: namespace, Name: name, UID: uid}, true
		}
	}
	return Component{}, false
}

// newSecret returns a Secret with one entry.
func (s *Store) newSecret(c Component, namespace, name string, revision int64, entry []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:          s.labelsFor(c.UID),
			Annotations:     map[string]string{s.options.Name + suffixOwner: strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")},
			Finalizers:      []string{s.finalizer()},
			OwnerReferences: ownerReferencesTo(c),
		},
		Type: corev1.SecretType(s.options.Name + suffixType),
		Data: map[string][]byte{entryKey(revision): entry},
	}
}

// metadataOf reads the metadata of a Secret that bears one of our names.
func (s *Store) metadataOf(c Component, object client.Object) (secret, bool) {
	generation, index, ok := s.naming(c).parse(object.GetName())
	unprotected := !slices.Contains(object.GetFinalizers(), s.finalizer()) ||
		object.GetLabels()[s.options.Name+suffixLabel] != string(c.UID) ||
		!slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == c.UID })
	return secret{
		namespace: object.GetNamespace(), name: object.GetName(),
		uid: object.GetUID(), resourceVersion: object.GetResourceVersion(),
		generation: generation, index: index,
		finalizers: object.GetFinalizers(), unprotected: unprotected,
		deleting: object.GetDeletionTimestamp() != nil,
	}, ok
}

// listSecrets returns the metadata of all Secrets of a component, by their label.
func (s *Store) listSecrets(ctx context.Context, c Component, namespaces []string) ([]secret, error) {
	var all []secret
	for _, namespace := range namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := s.options.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(s.labelsFor(c.UID))); err != nil {
			return nil, listError(namespace, err)
		}
		for i := range list.Items {
			if found, ok := s.metadataOf(c, &list.Items[i]); ok {
				all = append(all, found)
			}
		}
	}
	return all, nil
}

func listError(namespace string, err error) error {
	return fmt.Errorf("list the Secrets of the inventory in namespace %s: %w", namespace, err)
}

// patchSecret changes the very Secret that was read, if no other client changed it since.
func (s *Store) patchSecret(ctx context.Context, to secret, body map[string]any) (*corev1.Secret, error) {
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = to.uid, to.resourceVersion
	body["metadata"] = metadata
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	answer := &corev1.Secret{}
	answer.Namespace, answer.Name = to.namespace, to.name
	err = s.options.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(s.options.FieldOwner))
	return answer, err
}

// maxAttempts bounds how often a Secret is read again because another client changed it.
const maxAttempts = 4

// removeSecret removes our finalizer from a Secret and deletes it. The finalizer is removed
// first: the garbage collector deletes a Secret without it if the process ends in between.
func (s *Store) removeSecret(ctx context.Context, c Component, found secret) error {
	var err error
	for range maxAttempts {
		if found.uid == "" {
			object := &corev1.Secret{}
			if err = s.options.Client.Get(ctx, client.ObjectKey{Namespace: found.namespace, Name: found.name}, object); err != nil {
				break
			}
			found, _ = s.metadataOf(c, object)
		}
		if err = s.removeSecretOnce(ctx, found); !apierrors.IsConflict(err) {
			break
		}
		found.uid = ""
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove Secret %s/%s of the inventory: %w", found.namespace, found.name, err)
	}
	return nil
}

func (s *Store) removeSecretOnce(ctx context.Context, found secret) error {
	if slices.Contains(found.finalizers, s.finalizer()) {
		rest := slices.DeleteFunc(slices.Clone(found.finalizers), func(f string) bool { return f == s.finalizer() })
		if _, err := s.patchSecret(ctx, found, map[string]any{"metadata": map[string]any{"finalizers": rest}}); err != nil {
			return err
		}
	}
	if found.deleting {
		return nil
	}
	object := &corev1.Secret{}
	object.Namespace, object.Name = found.namespace, found.name
	return s.options.Client.Delete(ctx, object, client.Preconditions{UID: &found.uid})
}
