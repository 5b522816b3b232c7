// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// keyMark separates what was hashed from the number of the key.
const keyMark = "#"

// keyed is a hash as it is made with one of the digest keys.
func keyed(hash string, key int8) string {
	if hash == "" {
		return ""
	}
	return hash + keyMark + strconv.Itoa(int(key))
}

// unkeyed is what was hashed.
func unkeyed(hash string) string {
	content, _, _ := strings.Cut(hash, keyMark)
	return content
}

// keys is how many digest keys there may be, one after the other.
func (c Config) keys() int8 {
	for _, act := range c.Acts {
		if act.Kind == ActLoseKey {
			return int8(c.Disturbances) + 1
		}
	}
	return 1
}

// desiredKeyed are the desired objects with the digests that each key makes.
func (m *Model) desiredKeyed() []map[Holder]map[int][]plan.Desired {
	all := make([]map[Holder]map[int][]plan.Desired, m.Config.keys())
	for key := range all {
		all[key] = map[Holder]map[int][]plan.Desired{}
		for holder, versions := range m.desired {
			all[key][holder] = map[int][]plan.Desired{}
			for version, wanted := range versions {
				for _, d := range wanted {
					d.Digest = keyed(d.Digest, int8(key))
					all[key][holder][version] = append(all[key][holder][version], d)
				}
			}
		}
	}
	return all
}

// openInventory reads the record of the component for the key of the leader. Of what was recorded
// with another key, and has ended, nothing says whether it is what is desired now, so it
// counts as that.
func (m *Model) openInventory(s *State, a *actor, c *Component) []v1alpha1.InventoryItem {
	items := c.Inventory
	if a.key = s.key; c.Key != a.key {
		items = plan.Rekeyed(items)
	}
	for _, d := range m.desired[c.UID][c.Version] {
		item, _ := itemOf(items, d.Key)
		if !plan.IsRekeyed(item) {
			continue
		}
		ended := item.Phase == v1alpha1.PhaseCompleting || item.Phase == v1alpha1.PhaseCompleted || d.HasTTL && item.UID != "" && s.world.get(d.Key) == nil
		if k := (doneKey{c.UID, d.Key}); ended && s.truth.done[k] != "" {
			s.truth.done = with(s.truth.done, k, d.Digest)
		}
	}
	return items
}

// anyManifest stands for the manifest of an object that ended while nothing said of which
// manifest it was made: it counts as the one that is desired then.
const anyManifest = "any"

// madeOf is what an object that ends counts as made of.
func (s *State) madeOf(o *Object) string {
	for _, c := range s.world.components {
		if c == nil || c.UID != o.Holder {
			continue
		}
		if item, _ := itemOf(c.Inventory, o.Key); c.Key != s.key || plan.IsRekeyed(item) {
			return anyManifest
		}
	}
	return o.Made
}

// differs reports whether an object of an unknown manifest has another value than the
// desired one.
func (m *Model) differs(a *actor, o *Object) bool {
	d := m.desiredNow(a, o.Key)
	item, _ := itemOf(a.recorded, o.Key)
	return d != nil && plan.IsRekeyed(item) && o.Value != manifestOf(d).value
}
