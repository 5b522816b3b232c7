// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxResults is how many results are kept, one for each of the components that
// were rendered last.
const maxResults = 16

// results are what was built last, by the digest of the rendered templates.
type results struct {
	mu   sync.Mutex
	kept []result
}

type result struct {
	digest  [sha256.Size]byte
	objects []*unstructured.Unstructured
}

// digestOf is the same for the same texts only.
func digestOf(texts map[string]string) [sha256.Size]byte {
	hash := sha256.New()
	var length [8]byte
	add := func(text string) {
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		_, _ = hash.Write(length[:])
		_, _ = hash.Write([]byte(text))
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		add(name)
		add(texts[name])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

func (r *results) find(digest [sha256.Size]byte) ([]*unstructured.Unstructured, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.kept, func(kept result) bool { return kept.digest == digest })
	if i < 0 {
		return nil, false
	}
	found := r.kept[i]
	r.kept = append(slices.Delete(r.kept, i, i+1), found)
	return found.objects, true
}

func (r *results) keep(digest [sha256.Size]byte, objects []*unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, result{digest: digest, objects: objects})
	if len(r.kept) > maxResults {
		r.kept = slices.Delete(r.kept, 0, 1)
	}
}
