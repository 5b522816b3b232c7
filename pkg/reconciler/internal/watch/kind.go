// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Place is where objects are: of a type, in a namespace, or in none if the type
// has none.
type Place struct {
	Resource  cluster.Resource
	Namespace string
}

// kindKey identifies a type. A type that was replaced by one with another scope is another one.
type kindKey struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
}

func (p Place) kind() kindKey {
	return kindKey{gvr: p.Resource.GVR, kind: p.Resource.Kind, namespaced: p.Resource.Namespaced}
}

func (p Place) object(name string) objectName { return objectName{p.Namespace, name} }

// isWatchable reports whether the place can be watched at all.
func (p Place) isWatchable() bool {
	return p.Resource.Can("list") && p.Resource.Can("watch") && p.Resource.Namespaced == (p.Namespace != "")
}

// wide stands in the place of a namespace for the whole cluster.
const wide = ""

// kind holds the watches and records of one type.
type kind struct {
	key      kindKey
	resource cluster.Resource
	records  records
	// users counts the owners of each namespace; idle is since when a
	// namespace has none.
	users map[string]int
	idle  map[string]time.Time
	// scopes are the reflectors, by namespace.
	scopes   map[string]*scope
	refusals map[string]refusal
	// synced are the namespaces that were fully known at some time.
	synced map[string]bool
	// newest is the newest version that any answer or event has shown.
	newest string
}

// refusal records that the server does not let us list or watch somewhere.
type refusal struct {
	until time.Time
	count int
	// unserved: the type is not there at all; lost: it worked
	// before. Both may end in a moment: a server that has just started knows
	// neither all types nor all rights.
	unserved, lost bool
}

func newKind(key kindKey, resource cluster.Resource) *kind {
	return &kind{
		key: key, resource: resource, records: newRecords(key.gvr.Group, key.kind),
		users: map[string]int{}, idle: map[string]time.Time{}, scopes: map[string]*scope{},
		refusals: map[string]refusal{}, synced: map[string]bool{},
	}
}

// isUsed reports whether an owner uses a namespace, or did until a while ago.
func (k *kind) isUsed(namespace string) bool {
	_, idle := k.idle[namespace]
	return idle || k.users[namespace] > 0
}

// covers reports whether records of a namespace are kept.
func (k *kind) covers(namespace string) bool { return k.scopes[wide] != nil || k.isUsed(namespace) }

// wasSynced reports whether all objects of a namespace were known at some time, so that an unknown
// object is new.
func (k *kind) wasSynced(namespace string) bool { return k.synced[wide] || k.synced[namespace] }

// unsync notes that a namespace, or the whole cluster, is not watched any more. The records of the
// namespaces that are needed stay.
func (k *kind) unsync(namespace string) {
	if namespace != wide || !k.synced[wide] {
		return
	}
	delete(k.synced, wide)
	for used := range k.users {
		k.synced[used] = true
	}
	for idle := range k.idle {
		k.synced[idle] = true
	}
}

// authoritative returns the reflector that serves a namespace.
func (k *kind) authoritative(namespace string, now time.Time, stale time.Duration) *scope {
	for _, at := range []string{wide, namespace} {
		if scope := k.scopes[at]; scope != nil && scope.isFresh(now, stale) {
			return scope
		}
	}
	return nil
}

// difference returns the changes, for all owners but one. An object of the first list is no change.
func (k *kind) difference(at objectName, old, live *record, except string) []Change {
	if old == nil && !k.wasSynced(at.namespace) {
		return nil
	}
	return difference(k.records.key(at), old, live, except)
}

func (k *kind) dropUnused() {
	for namespace := range k.records.spaces {
		if !k.covers(namespace) {
			delete(k.records.spaces, namespace)
		}
	}
}

// set records an object. A state that is known to be outdated is not recorded, unless the
// storage was restored.
func (k *kind) set(at objectName, live *record, restored bool) []Change {
	if !restored && (k.records.isDeleted(live.uid) || k.records.isStale(at, live.version)) {
		return nil
	}
	old := k.records.get(at)
	live.shareStrings(old)
	k.records.set(at, live)
	if k.records.writes[at] != nil {
		return nil // notified when the requests have ended
	}
	return k.difference(at, old, live, "")
}

// isUnlisted reports whether a newer list than this version of an object does not have the object: it left before any
// version of it was known, so that nothing else tells.
func (k *kind) isUnlisted(at objectName, version string) bool {
	if k.records.get(at) != nil {
		return false
	}
	for _, place := range []string{wide, at.namespace} {
		if scope := k.scopes[place]; scope != nil && scope.isListed(version) {
			return true
		}
	}
	return false
}

// remove records that an object left the watch, at a version, with its last state.
func (k *kind) remove(at objectName, last *record, version string) []Change {
	old, changed := k.records.remove(at, version, last, time.Now())
	if !changed || k.records.writes[at] != nil {
		return nil
	}
	return k.difference(at, old, nil, "")
}

// replace records a list of a namespace or of the whole cluster.
func (k *kind) replace(namespace string, list map[types.NamespacedName]*record, version string, restored bool) (changes []Change) {
	if restored {
		k.records.dropDeletions()
		changes = k.dropNewer(namespace, version)
	}
	for name, live := range list {
		changes = append(changes, k.set(objectName{name.Namespace, name.Name}, live, restored)...)
	}
	for space, objects := range k.records.spaces {
		if namespace != wide && space != namespace {
			continue
		}
		for name, old := range objects {
			if list[types.NamespacedName{Namespace: space, Name: name}] != nil || before(version, old.version) && !restored {
				continue // our own answer is newer than the list
			}
			at := objectName{space, name}
			k.records.delete(at, version, old.ended(), time.Now())
			if k.records.writes[at] == nil {
				changes = append(changes, k.difference(at, old, nil, "")...)
			}
		}
	}
	return changes
}

// dropNewer drops the records of other namespaces in versions that do not exist
// any more: those objects were restored, too.
func (k *kind) dropNewer(namespace, version string) (changes []Change) {
	for space, objects := range k.records.spaces {
		for name, old := range objects {
			if namespace == wide || space == namespace || !before(version, old.version) {
				continue
			}
			at := objectName{space, name}
			delete(objects, name)
			if k.records.writes[at] == nil {
				changes = append(changes, k.difference(at, old, nil, "")...)
			}
		}
	}
	return changes
}

// Look returns the record of an object. It is known if there is a record that can be used. Watched
// reports whether all objects with our label at the place are known: an object that is not among
// them was not there, or did not have the label, when the watch last looked. That is no proof that
// it does not exist.
func (s *Store) Look(place Place, name string) (observation plan.Observation, known, watched bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.kinds[place.kind()]
	if k == nil || !place.isWatchable() || k.authoritative(place.Namespace, time.Now(), s.options.Stale) == nil {
		return plan.Observation{}, false, false
	}
	switch live := k.records.get(place.object(name)); {
	case live == nil:
		return plan.Observation{}, false, true
	case live.unread:
		return plan.Observation{}, false, false
	default:
		return live.observation(), true, true
	}
}

// Ending returns how far an object with a time to live had come when a watch saw it go. It
// is FinishUnknown if no watch did, or saw an object of another uid, or that was some time
// ago.
func (s *Store) Ending(place Place, name string, uid types.UID) plan.Finish {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.kinds[place.kind()]
	if k == nil || uid == "" {
		return plan.FinishUnknown
	}
	if left, known := k.records.tombstones.get(place.object(name)); known && left.uid == uid {
		return left.ending
	}
	return plan.FinishUnknown
}
