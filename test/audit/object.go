// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
)

// object is any other object after the requests of the log so far.
type object struct {
	uid     string
	version int64
	owned   ownership
	// gone: the server said so. unsure: it may be gone, or have changed, because
	// the log lacks what the controllers of the server do.
	gone, unsure bool
}

// exists reports whether the object is certainly on the server.
func (o *object) exists() bool { return !o.gone && !o.unsure }

// ofObject replays a write to an object that is no component.
func (r *replay) ofObject() {
	e := r.event
	resource := schema.GroupResource{Group: e.Group, Resource: e.Resource}
	if e.Verb == "deletecollection" {
		r.makeUnsure(func(k key) bool {
			return k.group == e.Group && k.kind == r.kinds[resource] && (e.Namespace == "" || k.namespace == e.Namespace)
		})
		if r.byOperator() {
			r.violate("S3", "a whole collection is deleted")
		}
		return
	}
	after := parse(e.Answered)
	k := after.key()
	// The answer to a client that asks for metadata alone has not the kind of the object.
	whole := after.isObject() && after.Kind != "PartialObjectMetadata"
	if whole && !strings.Contains(e.Subresource, "/") && (e.Subresource == "" || e.Subresource == "status" || e.Subresource == "finalize") {
		r.kinds[resource] = k.kind
	} else {
		k = key{e.Group, r.kinds[resource], e.Namespace, e.Name}
	}
	before := r.objects[k]
	if r.byOperator() && e.Subresource == "" {
		r.check(k, before, after)
	}
	r.update(k, after)
}

// update keeps what a write made of an object.
func (r *replay) update(k key, after body) {
	o := r.objects[k]
	if o == nil {
		o = &object{}
		r.objects[k] = o
	}
	version, _ := strconv.ParseInt(after.Metadata.ResourceVersion, 10, 64)
	terminating := after.Metadata.DeletionTimestamp != ""
	switch {
	case after.isObject() && version < o.version && after.Metadata.UID == o.uid:
		return // answered late
	case after.isObject():
		*o = object{uid: after.Metadata.UID, version: version, owned: ownershipOf(after, r.options.Name)}
		// A deletion may answer with the object as it was.
		o.gone = terminating && len(after.Metadata.Finalizers) == 0 || !terminating && r.event.Verb == "delete"
		// What finalizers are there for, the server's controllers do.
		o.unsure = terminating && !o.gone
	case r.event.Verb == "delete":
		o.gone = true
	default:
		o.unsure = true
	}
	if r.event.Verb == "delete" || terminating {
		r.cascade(k)
	}
}

// cascade notes which objects the server deletes after a deletion.
func (r *replay) cascade(k key) {
	switch {
	case k.group == "" && k.kind == "Namespace":
		r.makeUnsure(func(x key) bool { return x.namespace == k.name })
	case k.kind == "CustomResourceDefinition":
		_, group, _ := strings.Cut(k.name, ".")
		r.makeUnsure(func(x key) bool { return x.group == group })
	default:
		// Objects that it owns may be collected.
		r.makeUnsure(func(x key) bool { return x.namespace == k.namespace && r.objects[x].owned.isEmpty() })
	}
}

// makeUnsure notes that objects may be deleted without a line in the log.
func (r *replay) makeUnsure(which func(key) bool) {
	for k, o := range r.objects {
		if which(k) {
			o.unsure = true
		}
	}
}

// unanswered replays a write that may have been done or not: the client ended
// before the answer, or the server gave up.
func (r *replay) unanswered() {
	e := r.event
	if c := r.components[e.Namespace+"/"+e.Name]; c != nil && e.Group == r.options.Component.Group && e.Resource == r.options.Component.Resource {
		c.elsewhere = true
		return
	}
	k := key{e.Group, r.kinds[schema.GroupResource{Group: e.Group, Resource: e.Resource}], e.Namespace, e.Name}
	r.makeUnsure(func(x key) bool { return x == k })
	if e.Verb == "delete" {
		r.cascade(k)
	}
}

// check checks a write of the operator to an object that may be a dependent.
func (r *replay) check(k key, before *object, after body) {
	e := r.event
	now := ownershipOf(after, r.options.Name)
	if sent := ownershipOf(parse(e.Sent), r.options.Name); sent.owner != "" && sent.id != "" {
		r.ids[sent.id] = sent.owner // a webhook may remove the annotation from the answer
	}
	known := before != nil && before.exists()
	switch {
	case e.Verb == "delete":
		r.checkDeletion(k, before)
	case k.kind == "Secret" && strings.HasSuffix(k.name, "-outputs") && now.owner == "":
		r.checkOutputs(known, before, now)
		return // no dependent
	case now.shared != "" || known && before.owned.shared != "":
		r.checkShared(k, before, now)
	case now.owner != "" && now.id != "":
		r.checkWrite(k, before, after, now)
	case known && before.owned.id != "" && now.id == "":
		if !r.mayRemove(k, before) && !r.hasOurs(k, before) {
			r.violate("S2", "our label is removed, and the object belongs to %s", before.owned.describe())
		}
	default:
		return // no dependent
	}
	r.checked++
	if want := r.options.Impersonated; want != "" && e.Impersonated != want {
		r.violate("S18", "the request acts as %q, and must act as %q", e.Impersonated, want)
	}
}

// checkWrite checks a write after which an object has our label and annotation.
func (r *replay) checkWrite(k key, before *object, after body, now ownership) {
	r.ids[now.id] = now.owner
	c := r.owner(now)
	if c == nil {
		// The log lacks components that the test did not create, or not here.
		if r.known[now.owner+"/"+now.uid] {
			r.violate("S1", "it is written for %s, which is gone", now.owner)
		}
		return
	}
	if _, recorded := c.items[k]; !recorded && !c.elsewhere {
		r.violate("S1", "it is not in the record of %s on the server", c.title)
	}
	if before == nil || !before.exists() || before.uid != after.Metadata.UID {
		return
	}
	policy := strings.ToLower(after.Metadata.Annotations[r.options.Name+"/adoption-policy"])
	others := len(before.owned.others) > 0 && before.owned.owner != now.owner || before.owned.id != "" && before.owned.id != now.id && before.owned.owner != now.owner && r.options.Inherited[before.owned.id] != now.owner
	release := r.options.AdoptsReleases && policy != "never" && policy != "ignore" && before.owned.id == "" && before.owned.isRelease()
	switch {
	case others && !release && policy != "always" && (policy != "" || !r.options.AdoptsAlways):
		r.violate("S2", "it belongs to %s, and the adoption policy is %q", before.owned.describe(), policy)
	case before.owned.isEmpty() && policy == "never" && c.items[k] != before.uid:
		r.violate("S2", "it has no owner, and the adoption policy is never")
	}
}

// checkOutputs checks a write to a Secret with the name of a Secret of outputs.
func (r *replay) checkOutputs(known bool, before *object, now ownership) {
	switch {
	case !now.ours || known && !before.owned.ours:
		r.violate("S2", "it is written, and is no Secret of outputs")
	case r.event.Verb != "create" && parse(r.event.Sent).Metadata.ResourceVersion == "":
		r.violate("S2", "the write of a Secret of outputs demands no version")
	}
}

// checkShared checks a write to a definition that all components share, or shared before.
func (r *replay) checkShared(k key, before *object, now ownership) {
	demanded := parse(r.event.Sent).Metadata.ResourceVersion
	switch known := before != nil && before.exists(); {
	case k.kind != "CustomResourceDefinition" || now.id != "" || now.owner != "":
		r.violate("S1", "it is shared, and is no definition or belongs to %s, too", now.describe())
	case now.shared == "":
		r.violate("S2", "it was shared, and is not any more")
	case r.event.Verb != "create" && demanded == "":
		r.violate("S2", "the write of a shared definition demands no version")
	case known && len(before.owned.others) > 0:
		r.violate("S2", "it belongs to %s, and is shared", before.owned.describe())
	case known && lower(now.shared, before.owned.shared):
		r.violate("P10", "%q replaces %q, which is a higher version", now.shared, before.owned.shared)
	}
}

// lower reports whether the first annotation has a lower version than the second.
func lower(a, b string) bool {
	_, a, _ = strings.Cut(a, " ")
	_, b, _ = strings.Cut(b, " ")
	first, errA := version.ParseSemantic(a)
	second, errB := version.ParseSemantic(b)
	return errA == nil && errB == nil && first.LessThan(second)
}

// checkDeletion checks a deletion.
func (r *replay) checkDeletion(k key, before *object) {
	var options struct{ Preconditions struct{ UID string } }
	_ = json.Unmarshal(r.event.Sent, &options)
	if options.Preconditions.UID == "" {
		r.violate("S3", "the deletion demands no uid")
	}
	if before != nil && before.exists() && before.owned.shared != "" {
		r.violate("S7", "%s is deleted, and all components share it", k)
	} else if before != nil && before.exists() && !before.owned.ours && !r.mayRemove(k, before) {
		r.violate("S2", "%s is deleted, and belongs to %s", k, before.owned.describe())
	}
}

// mayRemove reports whether the object names a component as its owner that has
// recorded it, or is the recorded one and shows nothing.
func (r *replay) mayRemove(k key, o *object) bool {
	if len(o.owned.others) > 0 && !r.options.AdoptsAlways {
		return false
	}
	for _, c := range r.components {
		uid, recorded := c.items[k]
		switch {
		case !recorded && !c.elsewhere:
		case o.owned.id == "" && (c.elsewhere || uid == o.uid), o.owned.owner == c.title:
			return true
		case o.owned.owner == "" && r.ids[o.owned.id] == c.title:
			return true // the annotation was removed
		}
	}
	return false
}

// hasOurs reports whether the object has the annotation of a component that has recorded
// it, next to the labels of other owners: ours are removed when it is handed over to them.
func (r *replay) hasOurs(k key, o *object) bool {
	for _, c := range r.components {
		if _, recorded := c.items[k]; (recorded || c.elsewhere) && o.owned.owner == c.title {
			return true
		}
	}
	return false
}

// describe names the owner.
func (m ownership) describe() string {
	switch {
	case len(m.others) > 0:
		return strings.Join(m.others, " and ")
	case m.owner != "":
		return m.owner
	case m.id != "":
		return "the owner with id " + m.id
	default:
		return "no owner"
	}
}
