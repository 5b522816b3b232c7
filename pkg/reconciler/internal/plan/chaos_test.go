// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// disturbances are what the rest of the world does to a component.
var disturbances = []struct {
	name string
	do   func(s *simulation, key Key, o *object)
}{
	{"drift", func(s *simulation, key Key, o *object) {
		if !s.world.immutable[key] {
			o.value = pick(s, "1", "2", "3", "x")
		}
	}},
	{"add to", func(_ *simulation, _ Key, o *object) { o.extra += "+" }},
	{"strip", func(_ *simulation, _ Key, o *object) {
		o.ownership.OwnerID, o.ownership.Ref = "", OwnerRef{}
		if o.holder != heldByUs && len(o.ownership.OtherOwners) == 0 {
			o.holder = unheld
		}
	}},
	{"strip the label of", func(_ *simulation, _ Key, o *object) { o.ownership.OwnerID = "" }},
	{"steal", func(s *simulation, key Key, o *object) {
		item, _ := s.driver.item(key)
		o.stolen = o.holder == heldByUs && item.UID == o.uid
		by := pick[holder](s, "other", "helm")
		if s.candidates[key].Adoption == v1alpha1.AdoptionPolicyAlways {
			by = "other" // as long as our label is there, the policy ignores other owners
		}
		setOwner(o, by)
	}},
	{"hold", func(_ *simulation, _ Key, o *object) { o.finalizers = []string{"example.com/wait"} }},
	{"unready", func(_ *simulation, _ Key, o *object) { o.status = Status{Message: "not available"} }},
	{"failed", func(_ *simulation, _ Key, o *object) { o.status = Status{Readiness: Failed, Message: "gave up"} }},
	{"remove", func(s *simulation, _ Key, o *object) { s.world.remove(o) }},
	{"replace", func(s *simulation, key Key, o *object) {
		o.finalizers = nil
		s.world.remove(o)
		theirs := object{key: key, value: "theirs"}
		setOwner(&theirs, pick[holder](s, "none", "earlier", "other", "helm"))
		if key.Namespace == "" || s.world.objects[namespaceKey(key.Namespace)] != nil {
			s.world.put(theirs)
		}
	}},
	{"unknown", func(s *simulation, key Key, _ *object) { s.world.unreadable[key] = "the server is busy" }},
	{"refuse", func(s *simulation, key Key, _ *object) { s.world.refused[key] = "denied by a webhook" }},
	{"lose", func(s *simulation, key Key, _ *object) { s.world.lost[key] = true }},
	{"late news of", func(s *simulation, key Key, _ *object) { s.world.delay(key) }},
	{"news of", func(s *simulation, key Key, _ *object) { delete(s.world.late, key) }},
	{"webhook on", func(s *simulation, key Key, _ *object) { s.world.strips[key] = true }},
}

// disturb does something to the world.
func (s *simulation) disturb() {
	if s.chance(15) {
		s.world.progress()
		s.world.now = s.world.now.Add(time.Duration(s.rng.IntN(90)) * time.Second)
		s.note("progress, and it is %s", s.world.now)
		return
	}
	if s.chance(10) {
		s.world.unreadable, s.world.refused = map[Key]string{}, map[Key]string{}
		s.note("everything can be read and written")
		return
	}
	keys := s.world.keys()
	key := keys[s.rng.IntN(len(keys))]
	if key == namespaceKey("shop") {
		s.addOthers()
		return
	}
	d := disturbances[s.rng.IntN(len(disturbances))]
	s.note("%s %s", d.name, key)
	o := s.world.objects[key]
	d.do(s, key, o)
	s.world.touch(o)
	s.oracle.dropUnknowable()
}

// addOthers creates objects of other owners beside ours.
func (s *simulation) addOthers() {
	for _, name := range [][2]string{{"ConfigMap", "tenants/theirs"}, {"ConfigMap", "extra/theirs"}, {"Foo", "shop/theirs"}} {
		key, err := keyOf(name[0], name[1])
		if err != nil {
			s.t.Fatal(err)
		}
		if s.world.objects[key] == nil && s.world.objects[namespaceKey(key.Namespace)] != nil && s.world.serves(key.GroupKind()) && s.chance(50) {
			s.note("existing %s", key)
			s.world.put(object{key: key, holder: heldByOther})
		}
	}
}

// heal reverts all disturbances, and solves every conflict: what we may not
// take goes away.
func (s *simulation) heal() {
	s.note("heal")
	s.driver.crashAt = 0
	s.oracle.dropUnknowable()
	w := s.world
	w.unreadable, w.refused = map[Key]string{}, map[Key]string{}
	w.lost, w.strips, w.late = map[Key]bool{}, map[Key]bool{}, map[Key]Observation{}
	for _, key := range w.keys() {
		if o := w.objects[key]; o != nil {
			o.finalizers = nil
		}
	}
	w.finish()
	for _, key := range w.keys() {
		o := w.objects[key]
		if o == nil || o.holder == heldByUs || key == namespaceKey("shop") {
			continue
		}
		d := s.oracle.desiredFor(key)
		takes := d != nil && d.Policies.Adoption != v1alpha1.AdoptionPolicyNever && (o.holder == unheld || o.holder == heldByEarlier)
		if !takes || w.immutable[key] {
			w.remove(o)
		}
	}
	if s.world.objects[namespaceKey("shop")] == nil {
		s.world.put(object{key: namespaceKey("shop")})
	}
}

// live goes through the life of a component: versions, disturbances and
// crashes. The function is called before every reconcile.
func (s *simulation) live(look func()) {
	for range 3 + s.rng.IntN(6) {
		if len(s.driver.desired) == 0 || s.chance(25) {
			s.draw()
		}
		for range s.rng.IntN(4) {
			s.disturb()
		}
		if s.chance(50) {
			s.world.progress()
		}
		s.driver.missing = v1alpha1.MissingNamespacesPolicyCreate
		if s.chance(10) {
			s.driver.missing = v1alpha1.MissingNamespacesPolicyDoNotCreate
		}
		s.driver.events, s.driver.crashAt = 0, 0
		if s.chance(40) {
			s.driver.crashAt = 1 + s.rng.IntN(8)
		}
		look()
		s.reconcile()
	}
	s.driver.missing, s.driver.crashAt = v1alpha1.MissingNamespacesPolicyCreate, 0
}

// keysOf returns the keys of a record.
func keysOf(items []v1alpha1.InventoryItem) []Key {
	keys := make([]Key, len(items))
	for i, item := range items {
		keys[i] = KeyOf(item)
	}
	slices.SortFunc(keys, Key.Compare)
	return keys
}
