// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// secret is what is known about a Secret of ours.
type secret struct {
	namespace, name   string
	uid               types.UID
	resourceVersion   string
	generation, index int64
	finalizers        []string
	// broken: it does not hold what the head says.
	broken bool
	// frayed: it lacks what protects it, or by what it is found.
	frayed   bool
	deleting bool
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

// naming makes and reads the names of a component's Secrets.
type naming struct{ prefix string }

// maxReadable is how much of the component's name is in the names of its Secrets.
const maxReadable = 40

func (l *Ledger) naming(c Component) naming {
	sum := sha256.Sum256([]byte(strings.Join([]string{l.options.Name, groupOf(c.APIVersion), c.Kind, c.Namespace, c.Name, string(c.UID)}, "\x00")))
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

// labelsFor are the labels by which the Secrets of a component are found.
func (l *Ledger) labelsFor(uid types.UID) map[string]string {
	return map[string]string{l.options.Name + suffixLabel: string(uid)}
}

func (l *Ledger) annotationsFor(c Component) map[string]string {
	return map[string]string{l.options.Name + suffixOwner: strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")}
}

func (l *Ledger) finalizer() string { return l.options.Name + suffixFinalizer }

func (l *Ledger) secretType() corev1.SecretType {
	return corev1.SecretType(l.options.Name + suffixType)
}

// ownerOf makes the garbage collector remove the Secrets of a component that is
// gone. They do not block its deletion: that is what the finalizer is for.
func ownerOf(c Component) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name, UID: c.UID}
}

// ownerIn reads back whose Secret it is.
func (l *Ledger) ownerIn(object client.Object) (Component, bool) {
	uid := types.UID(object.GetLabels()[l.options.Name+suffixLabel])
	namespace, name, namespaced := strings.Cut(object.GetAnnotations()[l.options.Name+suffixOwner], "/")
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

func groupOf(apiVersion string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return gv.Group
}

// newSecret returns a Secret with one entry.
func (l *Ledger) newSecret(c Component, namespace, name string, revision int64, entry []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:          l.labelsFor(c.UID),
			Annotations:     l.annotationsFor(c),
			Finalizers:      []string{l.finalizer()},
			OwnerReferences: []metav1.OwnerReference{ownerOf(c)},
		},
		Type: l.secretType(),
		Data: map[string][]byte{entryKey(revision): entry},
	}
}

// factsOf reads the metadata of a Secret that bears one of our names.
func (l *Ledger) factsOf(c Component, object client.Object) (secret, bool) {
	generation, index, ok := l.naming(c).parse(object.GetName())
	frayed := !slices.Contains(object.GetFinalizers(), l.finalizer()) ||
		object.GetLabels()[l.options.Name+suffixLabel] != string(c.UID) ||
		!slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == c.UID })
	return secret{
		namespace: object.GetNamespace(), name: object.GetName(),
		uid: object.GetUID(), resourceVersion: object.GetResourceVersion(),
		generation: generation, index: index,
		finalizers: object.GetFinalizers(), frayed: frayed,
		deleting: object.GetDeletionTimestamp() != nil,
	}, ok
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
