// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/internal/digest"
)

const (
	// entryHistory is the key of the history in the data of the Secret.
	entryHistory = "history"
	// maxData bounds what a Secret holds, in bytes. The API server allows 1 MiB.
	//
	// Limit: the Secret of the revisions of one component. Newer revisions replace the oldest, and manifests that
	// do not fit are not kept.
	maxData = 1<<20 - 16<<10
	// maxRemembered is how large a history is kept in memory at most, in bytes. A larger one
	// is read again before it is changed.
	maxRemembered = 32 << 10
)

// Set holds the rendered objects of a revision.
type Set struct {
	// Revision is the number of the revision.
	Revision int64 `json:"revision"`
	// Digest identifies the content of the set.
	Digest string `json:"digest"`
	// Namespace is the namespace of the deployment, where objects without a namespace are.
	Namespace string `json:"namespace,omitempty"`
	// Public: no Secret was read for the objects, so that their values may be shown. An earlier build did not record it.
	Public bool `json:"public,omitempty"`
	// Objects are the objects as JSON.
	Objects []json.RawMessage `json:"-"`
}

// history is the serialised form of sets. Parts that several of them share are in it once.
type history struct {
	// Objects are sorted, so that similar ones are beside each other and compress well.
	Objects []json.RawMessage `json:"objects"`
	Sets    []historySet      `json:"sets"`
}

type historySet struct {
	Set
	// Members are indexes of Objects.
	Members []int `json:"members"`
}

func encodeHistory(sets []Set) ([]byte, error) {
	index := map[string]int{}
	for _, set := range sets {
		for _, object := range set.Objects {
			index[string(object)] = 0
		}
	}
	var h history
	for object := range index {
		h.Objects = append(h.Objects, json.RawMessage(object))
	}
	slices.SortFunc(h.Objects, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
	for i, object := range h.Objects {
		index[string(object)] = i
	}
	for _, set := range sets {
		members := make([]int, len(set.Objects))
		for i, object := range set.Objects {
			members[i] = index[string(object)]
		}
		h.Sets = append(h.Sets, historySet{set, members})
	}
	return json.Marshal(h)
}

// decodeHistory returns the sets, the last added one first.
func decodeHistory(content []byte) ([]Set, error) {
	var h history
	if err := json.Unmarshal(content, &h); err != nil {
		return nil, err
	}
	var sets []Set
	for _, entry := range h.Sets {
		set := entry.Set
		for _, i := range entry.Members {
			if i < 0 || i >= len(h.Objects) {
				return nil, fmt.Errorf("revision %d has an object that is missing", set.Revision)
			}
			set.Objects = append(set.Objects, h.Objects[i])
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// Retention decides which sets are kept.
type Retention struct {
	// Limit is how many.
	Limit int
	// LastReady is the number of a revision that is kept in any case: the last one that was ready.
	LastReady int64
}

// merge returns the sets with the added set, the last added one first. It replaces a set with the
// same revision and digest. The sets of later revisions stay, and one other of the same revision:
// the writer may be a process that was deposed and counted from an old status.
func (r Retention) merge(sets []Set, added Set) []Set {
	merged, other := []Set{added}, false
	for _, set := range sets {
		if set.Revision == added.Revision {
			if other || set.Digest == added.Digest {
				continue
			}
			other = true
		}
		merged = append(merged, set)
	}
	return r.cut(merged, r.Limit)
}

// cut returns the sets of the first revisions, as many as the limit, and of the last ready
// revision.
func (r Retention) cut(sets []Set, limit int) []Set {
	var kept []Set
	numbers := map[int64]bool{}
	for _, set := range sets {
		if len(numbers) < max(limit, 1) || numbers[set.Revision] || set.Revision == r.LastReady {
			numbers[set.Revision] = true
			kept = append(kept, set)
		}
	}
	return kept
}

// sealSets seals as many of the sets, which start with the latest, as have room.
func (r Retention) sealSets(key, boundTo []byte, sets []Set, room int) ([]byte, error) {
	for {
		content, err := encodeHistory(sets)
		if err != nil {
			return nil, err
		}
		sealed, err := seal(key, boundTo, content, room)
		if !IsTooLarge(err) || len(sets) == 1 {
			return sealed, err
		}
		fewer := sets[:1]
		for limit := len(sets) - 1; limit > 0; limit-- { // the last ready set goes last
			if cut := r.cut(sets, limit); len(cut) < len(sets) {
				fewer = cut
				break
			}
		}
		sets = fewer
	}
}

// Sets returns the sets of the component, the last added one first. The error is a LostError if the
// content is not the written one.
func (r *Record) Sets(ctx context.Context) ([]Set, error) {
	if err := r.readHistory(ctx); err != nil || len(r.history) == 0 {
		return nil, err
	}
	key, err := r.store.options.Key(ctx)
	if err != nil {
		return nil, err
	}
	content, err := open(key, r.store.boundToHistory(r.component), r.history)
	var sets []Set
	if err == nil {
		sets, err = decodeHistory(content)
	}
	if err != nil {
		return nil, &LostError{Secret: r.store.KeyOf(r.component), Changed: true, Err: err}
	}
	return sets, nil
}

// readHistory reads the history again if it is not in memory.
func (r *Record) readHistory(ctx context.Context) error {
	if !r.unread {
		return nil
	}
	again, err := r.store.Read(ctx, r.component)
	if err != nil {
		return err
	}
	if again.uid != r.uid || again.resourceVersion != r.resourceVersion {
		return apierrors.NewConflict(secrets, r.store.KeyOf(r.component).String(), errors.New("it was changed by another client"))
	}
	r.history, r.unread = again.history, false
	return nil
}

// forgetLargeHistory drops a history that takes much memory.
func (r *Record) forgetLargeHistory() {
	if len(r.history) > maxRemembered {
		r.history, r.unread = nil, true
	}
}

// Identify returns a digest that only the operator can compute.
func (s *Store) Identify(ctx context.Context, parts ...string) (string, error) {
	key, err := s.options.Key(ctx)
	if err != nil {
		return "", err
	}
	return digest.Hasher{Key: key}.Combine(parts...), nil
}
