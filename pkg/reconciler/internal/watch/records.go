// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math"
	"strings"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

type objectName struct{ namespace, name string }

type records struct {
	group, kind string
	// spaces holds the records by namespace and name.
	spaces map[string]map[string]*record
	// tombstones are the versions at which objects left: a state that is not newer comes too late
	// and does not bring them back.
	tombstones recent[objectName, tombstone]
	// deleted are objects that do not exist any more, in whatever version.
	deleted recent[types.UID, struct{}]
	// writes are our own requests under way.
	writes map[objectName]*writing
}

// tombstone is the last version of an object that left.
type tombstone struct {
	version string
	// uid and ending belong to the last state, if it is known to be the last one.
	uid    types.UID
	ending plan.Finish
}

func newRecords(group, kind string) records {
	return records{group: group, kind: kind, spaces: map[string]map[string]*record{}, writes: map[objectName]*writing{}}
}

func (r *records) key(name objectName) plan.Key {
	return plan.Key{Group: r.group, Kind: r.kind, Namespace: name.namespace, Name: name.name}
}

func (r *records) get(name objectName) *record { return r.spaces[name.namespace][name.name] }

func (r *records) set(name objectName, live *record) {
	space := r.spaces[name.namespace]
	if space == nil {
		space = map[string]*record{}
		r.spaces[name.namespace] = space
	}
	space[name.name] = live
	r.tombstones.drop(name)
}

// delete deletes the record, if there is one, and leaves a tombstone with the version and
// the last state of the object, which may be nil.
func (r *records) delete(name objectName, version string, last *record, now time.Time) {
	if space := r.spaces[name.namespace]; space != nil {
		if delete(space, name.name); len(space) == 0 {
			delete(r.spaces, name.namespace)
		}
	}
	left := tombstone{version: version}
	if last != nil && last.ending != plan.FinishUnknown {
		left.uid, left.ending = last.uid, last.ending
	}
	r.tombstones.put(name, left, now)
}

func (r *records) dropDeletions() {
	r.tombstones = recent[objectName, tombstone]{}
	r.deleted = recent[types.UID, struct{}]{}
}

func (r *records) isDeleted(uid types.UID) bool {
	_, deleted := r.deleted.get(uid)
	return deleted
}

// isStale reports whether an object is known in a newer version than this one.
func (r *records) isStale(name objectName, version string) bool {
	if known := r.get(name); known != nil {
		return before(version, known.version)
	}
	tombstone, left := r.tombstones.get(name)
	return left && compare(version, tombstone.version) <= 0
}

// remove records that an object left the watch, at a version, with its last state.
func (r *records) remove(name objectName, version string, last *record, now time.Time) (old *record, changed bool) {
	old = r.get(name)
	if old != nil && before(version, old.version) {
		return nil, false
	}
	if known, left := r.tombstones.get(name); old == nil && left && before(version, known.version) {
		return nil, false
	}
	r.delete(name, version, last, now)
	return old, old != nil
}

// confirmDeletion records that an object does not exist any more, which a request of ours
// has shown.
func (r *records) confirmDeletion(name objectName, uid types.UID, now time.Time) {
	r.deleted.put(uid, struct{}{}, now)
	if old := r.get(name); old != nil && old.uid == uid {
		r.delete(name, old.version, nil, now)
	}
}

// record is the cached state of an object. Many objects share the common parts. It is not changed
// once it is made. There is one for each dependent, so the order of the fields keeps it at 96
// bytes.
type record struct {
	uid          types.UID
	version      string
	observedHash string
	owners       unique.Handle[ownership]
	status       unique.Handle[plan.Status]
	kept         unique.Handle[kept]
	// scaled, referenced and ending are Scaled, HasOwnerReferences and Finish of
	// plan.Observation.
	scaled *plan.Scaling
	// created and deleting are seconds since 1970, 0 for never: the API knows no fractions.
	created, deleting uint32
	// unread is set for an object that exists, but could not be reduced.
	unread     bool
	referenced bool
	ending     plan.Finish
}

// kept are the fields that a write of the object keeps. Many objects have the same.
type kept struct {
	finalizers string // joined
	carried    string // Carried of plan.Observation
}

// ownership is plan.Ownership in a form that can be compared, without the controller: it
// matters only for an object that is not ours, which is read.
type ownership struct {
	owner    string
	ref      plan.OwnerRef
	others   string
	sapOwner string
}

const separator = "\n" // is in no finalizer and no name of an owner

// recordOf makes the record of an observation that is Present. It shares its strings with the
// observation, which the inventory of the owner holds, too.
func recordOf(o plan.Observation) *record {
	return &record{
		uid:          o.UID,
		version:      o.ResourceVersion,
		observedHash: o.ObservedHash,
		owners: unique.Make(ownership{
			owner: o.Ownership.OwnerID, ref: o.Ownership.Ref, others: strings.Join(o.Ownership.OtherOwners, separator),
			sapOwner: o.Ownership.SAPOwner,
		}),
		status:     unique.Make(o.Status),
		kept:       unique.Make(kept{finalizers: strings.Join(o.Finalizers, separator), carried: o.Carried}),
		created:    seconds(o.CreationTimestamp),
		deleting:   seconds(o.DeletionTimestamp),
		scaled:     o.Scaled,
		referenced: o.HasOwnerReferences,
		ending:     o.Finish,
	}
}

// shareStrings lets a new record of an object use the strings of the one before it, where
// they are equal. It is called before the record is published.
func (r *record) shareStrings(old *record) {
	if old == nil {
		return
	}
	if r.uid == old.uid {
		r.uid = old.uid
	}
	if r.observedHash == old.observedHash {
		r.observedHash = old.observedHash
	}
}

// unreadable is the record of an object that Reduce failed on.
func unreadable(live *unstructured.Unstructured, label string) *record {
	return &record{
		uid:     live.GetUID(),
		version: live.GetResourceVersion(),
		owners:  unique.Make(ownership{owner: live.GetLabels()[label]}),
		status:  unique.Make(plan.Status{}),
		kept:    unique.Make(kept{}),
		unread:  true,
	}
}

// observation is the inverse of recordOf.
func (r *record) observation() plan.Observation {
	m := r.owners.Value()
	return plan.Observation{
		Existence:          plan.Present,
		UID:                r.uid,
		ResourceVersion:    r.version,
		Ownership:          plan.Ownership{OwnerID: m.owner, Ref: m.ref, OtherOwners: split(m.others), SAPOwner: m.sapOwner},
		ObservedHash:       r.observedHash,
		DeletionTimestamp:  timeOf(r.deleting),
		Finalizers:         split(r.kept.Value().finalizers),
		Carried:            r.kept.Value().carried,
		CreationTimestamp:  timeOf(r.created),
		Status:             r.status.Value(),
		Scaled:             r.scaled,
		HasOwnerReferences: r.referenced,
		Finish:             r.ending,
	}
}

// ended returns the record if the work of the object has ended, which is not undone;
// otherwise nil.
func (r *record) ended() *record {
	if r.ending == plan.FinishComplete || r.ending == plan.FinishFailed {
		return r
	}
	return nil
}

func (r *record) owner() string { return r.owners.Value().owner }

// namesOwner reports whether the object has the label of an owner and the annotation that
// belongs to it.
func (r *record) namesOwner(owner string) bool {
	if r == nil {
		return false
	}
	m := r.owners.Value()
	return m.owner == owner && m.ref != plan.OwnerRef{}
}

// same reports whether two records differ in nothing but version and status.
func (r *record) same(other *record) bool {
	return r.uid == other.uid && r.observedHash == other.observedHash && r.owners == other.owners && r.keepsFinalizersOf(other) &&
		(r.deleting == 0) == (other.deleting == 0) && !r.unread && !other.unread
}

func (r *record) keepsFinalizersOf(other *record) bool {
	return r.kept == other.kept || r.kept.Value().finalizers == other.kept.Value().finalizers
}

// edited reports whether two records differ in the content, and otherwise in nothing but
// the version and the outputs.
func (r *record) edited(other *record) bool {
	if r == nil || other == nil {
		return false
	}
	unedited := *other
	unedited.observedHash = r.observedHash
	return r.same(&unedited) && r.isAsReadyAs(other)
}

// isAsReadyAs reports whether two records have the same readiness.
func (r *record) isAsReadyAs(other *record) bool {
	a, b := r.status.Value(), other.status.Value()
	return a.Readiness == b.Readiness && a.Message == b.Message
}

// seconds returns t as seconds since 1970. A time outside of the range of 32 bits, which only a
// server with a wrong clock gives, becomes the nearest one in it.
func seconds(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(min(max(t.Unix(), 1), math.MaxUint32))
}

func timeOf(seconds uint32) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

func split(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, separator)
}

// compare orders two versions. Versions that cannot be compared are ordered by their arrival: a
// counts as the newer one.
func compare(a, b string) int {
	if a == b {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 1
	}
	return order
}

// newer returns the newer one of two versions, either of which may be empty.
func newer(a, b string) string {
	if a == "" || b != "" && before(a, b) {
		return b
	}
	return a
}

// before reports whether version a is provably older than b.
func before(a, b string) bool { return compare(a, b) < 0 }

const (
	// maxRecent and maxAge bound the memory, for each type, of objects that left. The server does
	// not keep older events.
	maxRecent = 10_000
	maxAge    = 10 * time.Minute
)

// recent is a map that drops the oldest entries.
type recent[K comparable, V any] struct {
	entries map[K]remembered[V]
	order   []moment[K]
}

type remembered[V any] struct {
	value V
	at    time.Time
}

type moment[K comparable] struct {
	key K
	at  time.Time
}

func (m *recent[K, V]) put(key K, value V, now time.Time) {
	if m.entries == nil {
		m.entries = map[K]remembered[V]{}
	}
	m.entries[key] = remembered[V]{value, now}
	m.order = append(m.order, moment[K]{key, now})
	for len(m.order) > maxRecent || now.Sub(m.order[0].at) > maxAge {
		oldest := m.order[0]
		if m.entries[oldest.key].at.Equal(oldest.at) {
			delete(m.entries, oldest.key)
		}
		m.order = m.order[1:]
	}
}

func (m *recent[K, V]) get(key K) (value V, ok bool) {
	entry, ok := m.entries[key]
	return entry.value, ok
}

func (m *recent[K, V]) drop(key K) { delete(m.entries, key) }
