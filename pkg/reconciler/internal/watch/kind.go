// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// Place is where objects are: of a type, in a namespace, or in none if the type
// has none.
type Place struct {
	Resource  cluster.Resource
	Namespace string
}

// kindKey tells types apart. One that was replaced by one with another scope is another.
type kindKey struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
}

func (p Place) kind() kindKey {
	return kindKey{gvr: p.Resource.GVR, kind: p.Resource.Kind, namespaced: p.Resource.Namespaced}
}

func (p Place) object(name string) objectName { return objectName{p.Namespace, name} }

// watchable tells whether the place can be watched at all.
func (p Place) watchable() bool {
	return p.Resource.Can("list") && p.Resource.Can("watch") && p.Resource.Namespaced == (p.Namespace != "")
}

// wide stands in the place of a namespace for the whole cluster.
const wide = ""

// kind is what is watched of one type.
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
	// synced are the namespaces whose objects were known at some time.
	synced map[string]bool
	// newest is the newest version that any answer or event has shown.
	newest string
}

// refusal says that the server does not let us list or watch somewhere.
type refusal struct {
	until time.Time
	count int
	// unserved tells that the type is not there at all, lost that it worked
	// before. Both may be over in a moment: a server that has just started knows
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

// wanted tells whether somebody uses a namespace, or did until a while ago.
func (k *kind) wanted(namespace string) bool {
	_, idle := k.idle[namespace]
	return idle || k.users[namespace] > 0
}

// covers tells whether records of a namespace are kept.
func (k *kind) covers(namespace string) bool { return k.scopes[wide] != nil || k.wanted(namespace) }

// known tells whether all objects of a namespace were known at some time, so that
// one that is not is new.
func (k *kind) known(namespace string) bool { return k.synced[wide] || k.synced[namespace] }

// unsync notes that a namespace, or the whole cluster, is not watched any more.
// What was known of the namespaces that are needed remains known.
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

// believed returns the reflector whose word counts for a namespace.
func (k *kind) believed(namespace string, now time.Time, stale time.Duration) *scope {
	for _, at := range []string{wide, namespace} {
		if scope := k.scopes[at]; scope != nil && scope.believed(now, stale) {
			return scope
		}
	}
	return nil
}

// difference returns what changed, for all owners but one. What is there from the
// beginning is no change.
func (k *kind) difference(at objectName, old, live *record, except string) []Change {
	if old == nil && !k.known(at.namespace) {
		return nil
	}
	return difference(k.records.key(at), old, live, except)
}

// sweep forgets the objects that nobody needs.
func (k *kind) sweep() {
	for namespace := range k.records.spaces {
		if !k.covers(namespace) {
			delete(k.records.spaces, namespace)
		}
	}
}
