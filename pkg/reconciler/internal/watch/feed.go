// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import "time"

// This file is what the reflectors call.

// event takes over that an object is as told.
func (s *Store) event(from *scope, told *reduced) {
	s.feed(from, told.GetResourceVersion(), func(k *kind) []Change {
		if from.listed(told) {
			return nil
		}
		return k.present(told.name(), told.record, false)
	})
}

// leave takes over that an object left the watch.
func (s *Store) leave(from *scope, told *reduced) {
	s.feed(from, told.GetResourceVersion(), func(k *kind) []Change {
		if from.listed(told) {
			return nil
		}
		return k.vanished(told.name(), told)
	})
}

// replace takes over all that there is. If it comes from a watch that goes on, the
// watch is up; else it begins only now.
func (s *Store) replace(from *scope, list []*reduced, version string, streams bool) {
	s.feed(from, "", func(k *kind) []Change {
		restored := from.isOlder(version)
		if from.newest, from.list = version, version; restored {
			k.newest = version
		}
		changes := k.replace(from.namespace, list, version, restored)
		from.synced, from.failing, from.downSince = true, false, time.Time{}
		if !streams {
			from.downSince = time.Now()
		}
		if delete(k.refusals, from.namespace); from.namespace == wide {
			clear(k.refusals)
		}
		k.newest = newer(version, k.newest)
		k.synced[from.namespace] = true
		s.tend()
		return changes
	})
}

// feed changes records on behalf of a reflector, unless it is ended.
func (s *Store) feed(from *scope, version string, change func(*kind) []Change) {
	s.mu.Lock()
	var changes []Change
	if from.kind.scopes[from.namespace] == from && !s.closed {
		changes = change(from.kind)
		from.newest = newer(version, from.newest)
		from.kind.newest = newer(version, from.kind.newest)
	}
	s.mu.Unlock()
	s.tell(changes)
}

// isOlder tells whether a list is older than what the same server said before, or than
// what was known when it was asked for. Then it is that of a storage that was restored.
func (c *scope) isOlder(list string) bool {
	return c.newest != "" && before(list, c.newest) || c.floor != "" && before(list, c.floor)
}

// listed tells whether an event is older than the last list, which knew of it.
func (c *scope) listed(told *reduced) bool {
	return c.list != "" && compare(told.GetResourceVersion(), c.list) <= 0
}

func (k *kind) present(at objectName, live *record, believe bool) []Change {
	if !believe && (k.records.isDead(live.uid) || k.records.late(at, live.version)) {
		return nil
	}
	old := k.records.get(at)
	live.shareStrings(old)
	k.records.set(at, live)
	if k.records.writes[at] != nil {
		return nil // told when the requests are over
	}
	return k.difference(at, old, live, "")
}

func (k *kind) vanished(at objectName, told *reduced) []Change {
	old, changed := k.records.left(at, told.GetResourceVersion(), told.record, time.Now())
	if !changed || k.records.writes[at] != nil {
		return nil
	}
	return k.difference(at, old, nil, "")
}

// replace takes over a list of a namespace or of the whole cluster.
func (k *kind) replace(namespace string, list []*reduced, version string, restored bool) (changes []Change) {
	if restored {
		k.records.forget()
		changes = k.forgetNewer(namespace, version)
	}
	listed := make(map[objectName]bool, len(list))
	for _, told := range list {
		listed[told.name()] = true
		changes = append(changes, k.present(told.name(), told.record, restored)...)
	}
	for space, objects := range k.records.spaces {
		if namespace != wide && space != namespace {
			continue
		}
		for name, old := range objects {
			at := objectName{space, name}
			if listed[at] || before(version, old.version) && !restored {
				continue // our own answer is newer than the list
			}
			k.records.bury(at, version, old.ended(), time.Now())
			if k.records.writes[at] == nil {
				changes = append(changes, k.difference(at, old, nil, "")...)
			}
		}
	}
	return changes
}

// forgetNewer forgets the objects of other namespaces in versions that there are not
// any more: those were restored, too.
func (k *kind) forgetNewer(namespace, version string) (changes []Change) {
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
