// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

var seed = maphash.MakeSeed()

// fingerprinter makes numbers of States. States that differ only in the names of uids and
// resourceVersions are one: those are named in the order in which they are met. It is not safe for
// concurrent use.
type fingerprinter struct {
	buffer   []byte
	uids     []int
	versions []int
	keys     []plan.Key
}

func newFingerprinter(m *Model) *fingerprinter {
	f := &fingerprinter{}
	for key := range m.keys {
		f.keys = append(f.keys, key)
	}
	slices.SortFunc(f.keys, plan.Key.Compare)
	return f
}

// of returns the fingerprint of a State.
func (f *fingerprinter) of(m *Model, s *State) uint64 {
	f.buffer, f.uids, f.versions = f.buffer[:0], f.uids[:0], f.versions[:0]
	f.bytes(byte(s.budget), byte(s.active), byte(s.key))
	f.bytes(byte(s.halves), s.unread)
	for _, o := range s.world.objects {
		f.object(m, o)
	}
	for _, c := range s.world.components {
		f.component(m, c)
	}
	for i := range s.actors {
		f.actor(m, &s.actors[i])
	}
	for _, l := range s.late {
		f.bytes('l', byte(l.leader), m.keys[l.key])
		f.shown(l.known)
		f.shown(l.listed)
	}
	f.truth(m, s)
	return maphash.Bytes(seed, f.buffer)
}

func (f *fingerprinter) bytes(values ...byte) { f.buffer = append(f.buffer, values...) }

func (f *fingerprinter) flags(values ...bool) {
	for _, v := range values {
		if v {
			f.bytes(1)
		} else {
			f.bytes(0)
		}
	}
}

func (f *fingerprinter) text(values ...string) {
	for _, v := range values {
		f.buffer = binary.AppendUvarint(f.buffer, uint64(len(v)))
		f.buffer = append(f.buffer, v...)
	}
}

// name appends the position of a value among the met values.
func name(buffer []byte, met []int, value int) ([]byte, []int) {
	if value == 0 {
		return append(buffer, 0), met
	}
	i := slices.Index(met, value)
	if i < 0 {
		i, met = len(met), append(met, value)
	}
	return append(buffer, byte(i+1)), met
}

func (f *fingerprinter) uid(n int)     { f.buffer, f.uids = name(f.buffer, f.uids, n) }
func (f *fingerprinter) version(n int) { f.buffer, f.versions = name(f.buffer, f.versions, n) }

func (f *fingerprinter) uidText(uid types.UID) {
	if uid == "" {
		f.uid(0)
		return
	}
	n, _ := strconv.Atoi(string(uid[1:]))
	f.uid(n)
}

func (f *fingerprinter) versionText(text string) {
	n, _ := strconv.Atoi(text)
	f.version(n)
}

func (f *fingerprinter) object(m *Model, o *Object) {
	f.bytes('o', m.keys[o.Key])
	f.uid(o.UID)
	f.version(o.RV)
	f.text(o.Value, o.OwnerID, string(o.Ref.UID), string(o.Holder), string(o.FormerHolder), o.Made)
	f.flags(o.Extra, o.Helm, o.Ready, o.Deleting, o.Held, o.Controlled, o.Stolen, o.Orphaned, len(o.Defines) > 0, o.Expires)
}

// shown is the state of an object in a watch.
func (f *fingerprinter) shown(o *Object) {
	if o == nil {
		f.bytes(0)
		return
	}
	f.bytes(1)
	f.uid(o.UID)
	f.version(o.RV)
	f.text(o.Value, o.OwnerID, string(o.Ref.UID))
	f.flags(o.Extra, o.Helm, o.Ready, o.Deleting, o.Held, o.Controlled)
}

func (f *fingerprinter) component(m *Model, c *Component) {
	if c == nil {
		f.bytes('-')
		return
	}
	f.bytes('c')
	f.text(string(c.UID))
	f.version(c.RV)
	f.bytes(byte(c.Version), byte(c.Key))
	f.flags(c.Deleting, c.HasFinalizer)
	f.items(m, c.Inventory)
}

func (f *fingerprinter) items(m *Model, items []v1alpha1.InventoryItem) {
	f.bytes(byte(len(items)))
	for i := range items {
		item := &items[i]
		f.bytes(m.keys[plan.KeyOf(*item)], byte(item.ApplyOrder), byte(item.DeleteOrder))
		f.uidText(item.UID)
		by, of, _ := strings.Cut(item.Seal, "/")
		f.text(by)
		f.uidText(types.UID(of))
		f.text(item.Digest, item.Intended, item.ObservedHash, item.AppliedHash, string(item.Phase), string(item.Origin), string(item.DeletePolicy), string(item.Finished), item.Altered)
		f.flags(item.AppliedAt != nil, len(item.Defines) > 0, item.Keeps)
		f.moment(item.UnreadSince)
		f.moment(item.UnreadLast)
		f.bytes(byte(len(item.Kept)))
		for _, uid := range item.Kept {
			f.uidText(uid)
		}
	}
}

// moment is which half of the timeout starts at the time.
func (f *fingerprinter) moment(t *metav1.Time) {
	if t == nil {
		f.bytes(0)
		return
	}
	f.bytes(1 + byte(2*t.Sub(startOfTime)/timeout))
}

func (f *fingerprinter) actor(m *Model, a *actor) {
	f.bytes('a', byte(a.at))
	if a.at == idle {
		return
	}
	f.component(m, a.snap)
	f.items(m, a.recorded)
	f.flags(a.unreachable, a.disturbed, a.assumesAbsence)
	for _, key := range f.keys {
		if live, seen := a.live[key]; seen {
			f.bytes(m.keys[key])
			f.observation(live)
		}
		if failure, failed := a.failed[key]; failed {
			f.bytes('f', m.keys[key])
			f.flags(failure.Blocked, failure.Immutable)
			f.text(failure.Message)
		}
		if a.accepted[key] {
			f.bytes('y', m.keys[key])
		}
		if n := a.reads[key]; n > 0 {
			f.bytes('l', m.keys[key], byte(n))
		}
		if n := a.writes[key]; n > 0 {
			f.bytes('w', m.keys[key], byte(n))
		}
	}
	if a.at == looking {
		f.bytes(byte(len(a.toRecall)))
		for _, keys := range [][]plan.Key{a.toRecall, a.toRead} {
			for _, key := range keys {
				f.bytes(m.keys[key])
			}
		}
	}
	f.progress(m, a)
}

// progress is how far the steps of a plan are. The plan itself follows from the rest.
func (f *fingerprinter) progress(m *Model, a *actor) {
	if a.at != executing && a.at != recording {
		return
	}
	f.bytes('p', byte(a.stageAt))
	f.buffer = binary.AppendUvarint(f.buffer, uint64(a.executed))
	f.buffer = binary.AppendUvarint(f.buffer, uint64(a.guarded))
	for i := range a.plan.Steps {
		for _, r := range a.results {
			if r.Step.Key != a.plan.Steps[i].Key {
				continue
			}
			f.bytes('r', m.keys[r.Step.Key])
			f.observation(r.Observation)
			f.flags(r.Orphaned, r.ContentUnknown)
			f.text(r.Blocked)
			if r.Err != nil {
				f.text(r.Err.Error())
			}
		}
	}
}

func (f *fingerprinter) observation(o plan.Observation) {
	f.bytes(byte(o.Existence), byte(o.Status.Readiness))
	f.uidText(o.UID)
	f.versionText(o.ResourceVersion)
	f.text(o.Message, o.ObservedHash, o.AppliedHash)
	f.flags(o.NotServed, o.Differs, !o.DeletionTimestamp.IsZero(), len(o.Finalizers) > 0)
}

func (f *fingerprinter) truth(m *Model, s *State) {
	for _, uid := range s.truth.uids {
		f.text(string(uid))
		f.flags(s.truth.finalizerRemoved[uid])
		for _, key := range f.keys {
			k := doneKey{uid, key}
			if digest, done := s.truth.done[k]; done {
				f.bytes('d', m.keys[key])
				f.text(digest)
			}
			if s.truth.once[k] {
				f.bytes('1', m.keys[key])
			}
		}
	}
}
