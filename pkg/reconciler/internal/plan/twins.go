// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// A server may serve one object in several groups, such as Event in the core group and
// in events.k8s.io. When the manifests name another group, the recorded object and the
// wanted one have different keys and one uid.

// twins returns the wanted objects by their keys without the group.
func (w *work) twins() map[Key][]*unit {
	twins := map[Key][]*unit{}
	for _, u := range w.units {
		if u.desired != nil {
			twins[u.key.anyGroup()] = append(twins[u.key.anyGroup()], u)
		}
	}
	return twins
}

// moved reports whether the very object is wanted in another group.
func (u *unit) moved() bool {
	return slices.ContainsFunc(u.twins, func(twin *unit) bool {
		uid := twin.live.UID
		return twin.live.Existence == Present && uid != "" && (uid == u.item.UID || uid == u.live.UID)
	})
}

// unknownTwin returns a wanted object that may be the very object, in another group.
func (u *unit) unknownTwin() *unit {
	if i := slices.IndexFunc(u.twins, func(twin *unit) bool { return !twin.live.known() }); i >= 0 {
		return u.twins[i]
	}
	return nil
}

// waitTwin lets the removal wait until it is known that it is about another object.
func (w *work) waitTwin(u *unit) {
	twin := u.unknownTwin().key
	w.wait(u, WaitOrder, fmt.Sprintf("is removed when it is known that %s in the group %q is another object", twin, twin.Group))
}

// Twins are the recorded objects by their keys without the group.
type Twins map[Key][]Key

// TwinsOf returns what is recorded.
func TwinsOf(recorded []v1alpha1.InventoryItem) Twins {
	twins := Twins{}
	for _, item := range recorded {
		key := KeyOf(item)
		twins[key.anyGroup()] = append(twins[key.anyGroup()], key)
	}
	return twins
}

// Has reports whether an object of the same kind and name is recorded in another group.
// It may be the very object, so it must not be presumed that the object does not exist.
func (t Twins) Has(key Key) bool {
	return slices.ContainsFunc(t[key.anyGroup()], func(other Key) bool { return other != key })
}
