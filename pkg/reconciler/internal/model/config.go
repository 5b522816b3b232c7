// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// reconcilerName is the prefix of the ownership label and annotation.
const reconcilerName = "corbel.example.com"

var startOfTime = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// timeout is the timeout of the components.
const timeout = 10 * time.Minute

// Want is one desired object.
type Want struct {
	Key     plan.Key
	Value   string
	Defines []v1alpha1.TypeInfo
	// Expires: the cluster removes the object after its end.
	Expires bool
	// Policies change the documented defaults.
	Policies func(*policy.Set)
}

// Config is the small world of one exploration.
type Config struct {
	Name string
	// Components are the objects that each component asks for, version by version.
	Components [][][]Want
	// Leaders is 1, or 2 if the lease may move to a second process.
	Leaders int
	// Disturbances bounds how many of Acts, and of failures of requests, happen.
	Disturbances int
	// Acts are the possible acts of other clients.
	Acts []Act
	// Fails lets requests fail: reads and writes, each as a disturbance.
	Fails bool
	// Unread lets reads of the content of namespaces fail, each as a disturbance.
	Unread bool
	// Fixed objects cannot be changed in place.
	Fixed []plan.Key
	// Slow objects never become ready.
	Slow []plan.Key
	// There exists from the start.
	There []Object
	// Missing is the policy for namespaces; empty means to create them.
	Missing v1alpha1.MissingNamespacesPolicy
	// Watched lets the leaders know objects from a watch; otherwise they read them.
	Watched bool
	// NoConfirmation lets creates be sent however old the leader's knowledge is.
	NoConfirmation bool
}

// Act is an act of another client.
type Act struct {
	Kind ActKind
	// Key is the object; unused for acts on components.
	Key plan.Key
	// Component is the index of the component that the act is about.
	Component int
	// Leader is the leader with the watch that the act is about.
	Leader int8
}

// ActKind is a kind of act.
type ActKind string

// Kinds of acts on objects.
const (
	ActCreate      ActKind = "creates"            // by hand, without ownership metadata
	ActCreateOwned ActKind = "creates, as theirs" // with another component's label and annotation
	ActDrift       ActKind = "edits"
	ActAdd         ActKind = "adds a field to"
	ActDelete      ActKind = "deletes"
	ActStrip       ActKind = "strips the label and annotation of"
	ActUnlabel     ActKind = "strips the label of"
	ActSteal       ActKind = "puts its own label and annotation on"
	ActHelm        ActKind = "lets Helm annotate"
	ActControl     ActKind = "lets a controller refer to"
	ActHold        ActKind = "adds a finalizer to"
	ActUnhold      ActKind = "removes the finalizer of"
	ActDeleteAnew  ActKind = "deletes and creates anew"
	ActUnready     ActKind = "breaks"
	ActExpire      ActKind = "lets the time to live remove"
	ActForge       ActKind = "forges the record of a component to hold"
	ActChange      ActKind = "changes the spec of component"
	ActRemove      ActKind = "deletes component"
	ActRecreate    ActKind = "creates anew component"
	ActForce       ActKind = "removes the finalizer of component"
	ActCrash       ActKind = "crash of the process"
	ActLoseKey     ActKind = "crash of the process, and the digest key is lost"
	ActLoseLease   ActKind = "pause of the leader, and another one is elected"
	ActTouchStatus ActKind = "touches the metadata of component"
	ActHalfTimeout ActKind = "half of the timeout of the components passes"
	ActDelay       ActKind = "the watch falls behind"
)

// Model is a Config made ready.
type Model struct {
	Config
	keys    map[plan.Key]byte
	desired map[Holder]map[int][]plan.Desired
	keyed   []map[Holder]map[int][]plan.Desired // by digest key
	moves   []Move                              // all disturbances by acts
	// allowed reports whether a first disturbance is explored; nil means all are.
	allowed func(index int) bool
	// planned checks a plan and its input further; nil means it is not called.
	planned func(s *State, in plan.Input, p plan.Plan)
}

// New prepares a configuration.
func New(c Config) *Model {
	if c.Missing == "" {
		c.Missing = v1alpha1.MissingNamespacesPolicyCreate
	}
	if c.Leaders == 0 {
		c.Leaders = 1
	}
	m := &Model{Config: c, keys: map[plan.Key]byte{}, desired: map[Holder]map[int][]plan.Desired{}}
	note := func(key plan.Key) {
		for _, k := range []plan.Key{key, namespaceOf(key)} {
			if _, known := m.keys[k]; !known && k.Name != "" {
				m.keys[k] = byte(len(m.keys) + 1)
			}
		}
	}
	note(componentNamespace)
	for i, versions := range c.Components {
		for incarnation := 1; incarnation <= c.incarnations(i); incarnation++ {
			owner := ownerOf(i, incarnation)
			m.desired[Holder(owner.Ref.UID)] = map[int][]plan.Desired{}
			for v, wants := range versions {
				for _, want := range wants {
					note(want.Key)
					m.desired[Holder(owner.Ref.UID)][v] = append(m.desired[Holder(owner.Ref.UID)][v], desiredOf(want, owner))
				}
			}
		}
	}
	m.keyed = m.desiredKeyed()
	for _, o := range c.There {
		note(o.Key)
	}
	for i, act := range c.Acts {
		if act.Key.Name != "" {
			note(act.Key)
		}
		m.moves = append(m.moves, Move{Kind: moveAct, Arg: int8(i)})
	}
	return m
}

// componentNamespace is the namespace that always exists, and that the components live in.
var componentNamespace = plan.Key{Kind: "Namespace", Name: "shop"}

func namespaceOf(key plan.Key) plan.Key { return plan.Key{Kind: "Namespace", Name: key.Namespace} }

func (c Config) incarnations(component int) int {
	n := 1
	for _, act := range c.Acts {
		if act.Kind == ActRecreate && act.Component == component {
			n = 1 + c.Disturbances
		}
	}
	return n
}

// ownerOf is a component in one of its incarnations.
func ownerOf(component, incarnation int) plan.Owner {
	name := string(rune('a' + component))
	return plan.Owner{ID: "id-" + name, Ref: plan.OwnerRef{
		Group: "example.com", Kind: "Shop", Namespace: "shop", Name: name, UID: types.UID(fmt.Sprint(name, incarnation)),
	}}
}

// ownerBy is the owner with a uid.
func ownerBy(uid Holder) plan.Owner {
	return ownerOf(int(uid[0]-'a'), int(uid[1]-'0'))
}

// following is the uid of the next incarnation.
func following(uid Holder) Holder { return Holder([]byte{uid[0], uid[1] + 1}) }

// sameName reports whether both are incarnations of one component.
func sameName(a, b Holder) bool { return a != "" && b != "" && a[0] == b[0] }

func desiredOf(w Want, owner plan.Owner) plan.Desired {
	set := policy.Set{
		Adoption: v1alpha1.AdoptionPolicyIfUnowned, Reconcile: v1alpha1.ReconcilePolicyOnObjectChange,
		Update: v1alpha1.UpdatePolicyReplace, Delete: v1alpha1.DeletePolicyDelete,
	}
	if w.Policies != nil {
		w.Policies(&set)
	}
	manifest := &unstructured.Unstructured{Object: map[string]any{"value": w.Value}}
	manifest.SetLabels(map[string]string{reconcilerName + "/" + vocabulary.LabelOwnerID: owner.ID})
	manifest.SetAnnotations(map[string]string{reconcilerName + "/" + vocabulary.AnnotationOwner: owner.Ref.String()})
	d := plan.Desired{Key: w.Key, Version: "v1", Policies: set, Defines: w.Defines, HasTTL: w.Expires, Manifest: manifest}
	purge := "-"
	if set.Order.Purge != nil {
		purge = fmt.Sprint(*set.Order.Purge)
	}
	parts := []any{w.Value, set.Adoption, set.Reconcile, set.Update, set.Delete, set.Order.Apply, set.Order.Delete, purge, set.DependsOn, set.RunOn}
	d.Digest = strings.Trim(fmt.Sprint(parts), "[]")
	return d
}

// manifest holds the parts of a manifest that the model knows.
type manifest struct {
	value, ownerID string
	ref            plan.OwnerRef
}

func manifestOf(d *plan.Desired) manifest {
	var m manifest
	m.value, _ = d.Manifest.Object["value"].(string)
	metadata, _ := d.Manifest.Object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	m.ownerID, _ = labels[reconcilerName+"/"+vocabulary.LabelOwnerID].(string)
	text, _ := annotations[reconcilerName+"/"+vocabulary.AnnotationOwner].(string)
	m.ref, _ = plan.ParseOwnerRef(text)
	return m
}

// Start is the State in which every component was just created, and nothing happened yet.
func (m *Model) Start() *State {
	s := &State{budget: int8(m.Disturbances)}
	s.world.put(Object{Key: componentNamespace, Ready: true})
	for _, o := range m.There {
		o.Ready = true
		s.world.put(o)
	}
	for i := range m.Components {
		s.world.components = append(s.world.components, nil)
		s.truth.uids = append(s.truth.uids, Holder(ownerOf(i, 1).Ref.UID))
		s.world.putComponent(i, Component{UID: Holder(ownerOf(i, 1).Ref.UID)})
		for leader := range m.Leaders {
			s.actors = append(s.actors, actor{component: int8(i), leader: int8(leader)})
		}
	}
	return s
}

// keySeparator separates the hashed content from the number of the key.
const keySeparator = "#"

// keyed is a hash as it is made with one of the digest keys.
func keyed(hash string, key int8) string {
	if hash == "" {
		return ""
	}
	return hash + keySeparator + strconv.Itoa(int(key))
}

// unkeyed is the hashed content.
func unkeyed(hash string) string {
	content, _, _ := strings.Cut(hash, keySeparator)
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
			for version, desired := range versions {
				for _, d := range desired {
					d.Digest = keyed(d.Digest, int8(key))
					all[key][holder][version] = append(all[key][holder][version], d)
				}
			}
		}
	}
	return all
}

// openInventory reads the record of the component for the key of the leader. If an object was
// recorded with another key, and has ended, its manifest is not known; it counts as the desired
// one.
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
		ended := item.Phase == vocabulary.PhaseCompleting || item.Phase == vocabulary.PhaseCompleted || d.HasTTL && item.UID != "" && s.world.get(d.Key) == nil
		if k := (doneKey{c.UID, d.Key}); ended && s.truth.done[k] != "" {
			s.truth.done = with(s.truth.done, k, d.Digest)
		}
	}
	return items
}

// anyManifest stands for the manifest of an object that ended while its manifest was not known: it
// counts as the manifest that is desired then.
const anyManifest = "any"

// madeOf is the manifest that an object that ends counts as made of.
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
