// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is any other object as the log has told it so far.
type object struct {
	uid     string
	version int64
	marks   marks
	// gone: the server said so. unsure: it may be gone, or look otherwise,
	// because the log does not tell everything that the server does by itself.
	gone, unsure bool
}

// there tells whether the object is certainly on the server.
func (o *object) there() bool { return !o.gone && !o.unsure }

// ofObject takes over a write to anything but a component.
func (r *replay) ofObject() {
	e := r.event
	resource := schema.GroupResource{Group: e.Group, Resource: e.Resource}
	if e.Verb == "deletecollection" {
		r.blur(func(k key) bool {
			return k.group == e.Group && k.kind == r.kinds[resource] && (e.Namespace == "" || k.namespace == e.Namespace)
		})
		if r.byOperator() {
			r.violate("S3", "a whole collection is deleted")
		}
		return
	}
	after := parse(e.Answered)
	k := after.key()
	if after.isObject() && !strings.Contains(e.Subresource, "/") && (e.Subresource == "" || e.Subresource == "status" || e.Subresource == "finalize") {
		r.kinds[resource] = k.kind
	} else {
		k = key{e.Group, r.kinds[resource], e.Namespace, e.Name}
	}
	before := r.objects[k]
	if r.byOperator() && e.Subresource == "" {
		r.judge(k, before, after)
	}
	r.take(k, after)
}

// take takes over what a write made of an object.
func (r *replay) take(k key, after body) {
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
		*o = object{uid: after.Metadata.UID, version: version, marks: marksOf(after, r.options.Name)}
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

// cascade notes what the server takes away by itself after a deletion.
func (r *replay) cascade(k key) {
	switch {
	case k.group == "" && k.kind == "Namespace":
		r.blur(func(x key) bool { return x.namespace == k.name })
	case k.kind == "CustomResourceDefinition":
		_, group, _ := strings.Cut(k.name, ".")
		r.blur(func(x key) bool { return x.group == group })
	default:
		// Whatever it owns may be collected.
		r.blur(func(x key) bool { return x.namespace == k.namespace && r.objects[x].marks.bare() })
	}
}

// blur notes that objects may go without a line in the log.
func (r *replay) blur(which func(key) bool) {
	for k, o := range r.objects {
		if which(k) {
			o.unsure = true
		}
	}
}

// unanswered takes over a write of which nobody knows whether it was done: the
// client left before the answer, as one that dies does, or the server gave up.
func (r *replay) unanswered() {
	e := r.event
	if c := r.components[e.Namespace+"/"+e.Name]; c != nil && e.Group == r.options.Component.Group && e.Resource == r.options.Component.Resource {
		c.elsewhere = true
		return
	}
	k := key{e.Group, r.kinds[schema.GroupResource{Group: e.Group, Resource: e.Resource}], e.Namespace, e.Name}
	r.blur(func(x key) bool { return x == k })
	if e.Verb == "delete" {
		r.cascade(k)
	}
}

// judge judges a write of the operator to an object that may be a dependent.
func (r *replay) judge(k key, before *object, after body) {
	e := r.event
	now := marksOf(after, r.options.Name)
	known := before != nil && before.there()
	switch {
	case e.Verb == "delete":
		r.judgeDeletion(k, before)
	case now.owner != "" && now.id != "":
		r.judgeWrite(k, before, after, now)
	case known && before.marks.id != "" && now.id == "":
		if !r.mayRemove(k, before) && !r.bearsOurs(k, before) {
			r.violate("S2", "our marks are taken off, and the object belongs to %s", before.marks.describe())
		}
	default:
		return // no dependent
	}
	r.judged++
	if want := r.options.Impersonated; want != "" && e.Impersonated != want {
		r.violate("S18", "the request acts as %q, and must act as %q", e.Impersonated, want)
	}
}

// judgeWrite judges a write after which an object bears our marks.
func (r *replay) judgeWrite(k key, before *object, after body, now marks) {
	r.ids[now.id] = now.owner
	c := r.owner(now)
	if c == nil {
		// What the log has never told of, the test did not create, or not here.
		if r.known[now.owner+"/"+now.uid] {
			r.violate("S1", "it is written for %s, which is gone", now.owner)
		}
		return
	}
	if _, recorded := c.items[k]; !recorded && !c.elsewhere {
		r.violate("S1", "it is not in the record of %s on the server", c.title)
	}
	if before == nil || !before.there() || before.uid != after.Metadata.UID {
		return
	}
	policy := strings.ToLower(after.Metadata.Annotations[r.options.Name+"/adoption-policy"])
	others := len(before.marks.others) > 0 && before.marks.owner != now.owner || before.marks.id != "" && before.marks.id != now.id && before.marks.owner != now.owner
	switch {
	case others && policy != "always" && (policy != "" || !r.options.AdoptsAlways):
		r.violate("S2", "it belongs to %s, and the adoption policy is %q", before.marks.describe(), policy)
	case before.marks.bare() && policy == "never" && c.items[k].UID != before.uid:
		r.violate("S2", "it belongs to nobody, and the adoption policy is never")
	}
}

// judgeDeletion judges a deletion.
func (r *replay) judgeDeletion(k key, before *object) {
	var options struct{ Preconditions struct{ UID string } }
	_ = json.Unmarshal(r.event.Sent, &options)
	if options.Preconditions.UID == "" {
		r.violate("S3", "the deletion demands no uid")
	}
	if before != nil && before.there() && !r.mayRemove(k, before) {
		r.violate("S2", "%s is deleted, and belongs to %s", k, before.marks.describe())
	}
}

// mayRemove tells whether the object names a component as its owner that has
// recorded it, or is the recorded one and shows nothing.
func (r *replay) mayRemove(k key, o *object) bool {
	if len(o.marks.others) > 0 && !r.options.AdoptsAlways {
		return false
	}
	for _, c := range r.components {
		i, recorded := c.items[k]
		switch {
		case !recorded && !c.elsewhere:
		case o.marks.id == "" && (c.elsewhere || i.UID == o.uid), o.marks.owner == c.title:
			return true
		case o.marks.owner == "" && r.ids[o.marks.id] == c.title:
			return true // the annotation was taken off
		}
	}
	return false
}

// bearsOurs tells whether the object bears the marks of a component that has recorded
// it, next to those of others: ours go when it is left to them.
func (r *replay) bearsOurs(k key, o *object) bool {
	for _, c := range r.components {
		if _, recorded := c.items[k]; (recorded || c.elsewhere) && o.marks.owner == c.title {
			return true
		}
	}
	return false
}

// describe names whose marks they are.
func (m marks) describe() string {
	switch {
	case len(m.others) > 0:
		return strings.Join(m.others, " and ")
	case m.owner != "":
		return m.owner
	case m.id != "":
		return "the owner with id " + m.id
	default:
		return "nobody"
	}
}
