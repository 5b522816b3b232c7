// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/env"
)

// component is a component after the requests of the log so far.
type component struct {
	title      string // group/kind/namespace/name
	uid        string
	version    int64
	finalizers []string
	items      map[key]string // the uids of the objects in its record
	// elsewhere: the record is not known, because it is not in the status, because it is
	// not known whether the last write was done, or because the log lacks that write.
	elsewhere bool
	// forged: another client removed objects from the record, which the operator
	// may not have found again.
	forged bool
}

// ofComponent replays a write to a component, and checks it if it is the operator's.
func (r *replay) ofComponent() {
	after := parse(r.event.Answered)
	place := r.event.Namespace + "/" + r.event.Name
	if r.event.Name == "" {
		place = after.Metadata.Namespace + "/" + after.Metadata.Name
	}
	if !after.isObject() {
		if r.event.Verb == "delete" {
			delete(r.components, place)
		}
		return
	}
	k := after.key()
	now := &component{
		title: strings.Join([]string{k.group, k.kind, k.namespace, k.name}, "/"), uid: after.Metadata.UID,
		finalizers: after.Metadata.Finalizers, items: map[key]string{}, elsewhere: after.Status.Inventory.Chunks != nil || r.incomplete[r.index],
	}
	for _, i := range after.Status.Inventory.Items {
		now.items[key{i.Group, i.Kind, i.Namespace, i.Name}] = string(i.UID)
	}
	r.known[now.title+"/"+now.uid] = true
	now.version, _ = strconv.ParseInt(after.Metadata.ResourceVersion, 10, 64)
	before := r.components[place]
	if before != nil && before.uid == now.uid && now.version < before.version {
		return // answered late: a watch may show a component before its creation is answered
	}
	now.forged = before != nil && before.uid == now.uid && (before.forged || !r.byOperator() && len(now.items) < len(before.items))
	if r.byOperator() {
		r.checkRecord(before, now, after)
		r.checkReady(after)
	}
	if r.components[place] = now; after.Metadata.DeletionTimestamp != "" && len(now.finalizers) == 0 {
		delete(r.components, place)
	}
}

// incomplete returns the writes to components, by their place in the log, after which the
// log lacks a write: a server that is killed answers a write and does not log it. A later
// write that demands a version which no logged write has answered shows that.
func incomplete(events []env.AuditEvent, options Options) map[int]bool {
	type write struct {
		index   int
		version int64
	}
	found := map[int]bool{}
	writes := map[string][]write{} // by the uid of the component
	for i, e := range events {
		if isRead(e.Verb) || e.Code < 200 || e.Code > 299 || e.Group != options.Component.Group || e.Resource != options.Component.Resource {
			continue
		}
		after := parse(e.Answered)
		version, _ := strconv.ParseInt(after.Metadata.ResourceVersion, 10, 64)
		demanded, _ := strconv.ParseInt(parse(e.Sent).Metadata.ResourceVersion, 10, 64)
		earlier := writes[after.Metadata.UID]
		last := slices.IndexFunc(earlier, func(w write) bool { return w.version >= demanded })
		switch {
		case demanded == 0 || len(earlier) == 0:
		case last < 0:
			found[earlier[len(earlier)-1].index] = true
		case last > 0 && earlier[last].version > demanded:
			found[earlier[last-1].index] = true
		}
		writes[after.Metadata.UID] = append(earlier, write{i, version})
	}
	return found
}

// checkRecord checks a change of the record by the operator.
func (r *replay) checkRecord(before, now *component, after body) {
	recorded := slices.Contains(now.finalizers, r.options.Finalizer)
	finalized := after.Metadata.DeletionTimestamp != "" && !recorded
	if !recorded && !finalized && len(now.items) > 0 {
		r.violate("S12", "objects are recorded, and the component lacks the finalizer %s", r.options.Finalizer)
	}
	if before == nil || before.uid != now.uid || before.elsewhere || now.elsewhere {
		return
	}
	for k, uid := range before.items {
		if _, stays := now.items[k]; !stays && r.isOurs(k, uid, now) {
			r.violate("S4", "%s is dropped from the record, and it exists and is ours", k)
		}
	}
	// A component that is skipped or abandoned keeps its labels and annotations on its dependents.
	untouched := after.Metadata.Annotations[r.options.Name+"/management-policy"] == "skip" || after.Metadata.Annotations[r.options.Name+"/abandon"] == "true"
	if !finalized || untouched || now.forged {
		return
	}
	for k, o := range r.objects {
		if o.exists() && o.owned.uid == now.uid && o.owned.owner == now.title && len(o.owned.others) == 0 {
			r.violate("S12", "the finalizer goes, and %s exists and is ours", k)
		}
	}
}

// checkReady checks that a component that says that it is ready names no revision that was never ready.
func (r *replay) checkReady(after body) {
	for _, entry := range after.Status.History {
		if entry.Revision == after.Status.Revision && entry.Result != v1alpha1.RevisionReady && meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionReady) {
			r.violate("S25", "Ready is True, and revision %d, which the status names, is %s", entry.Revision, entry.Result)
		}
	}
}

// isOurs reports whether an object is certainly on the server, and has the label and the
// annotation of the component.
func (r *replay) isOurs(k key, uid string, c *component) bool {
	o := r.objects[k]
	return o != nil && o.exists() && o.owned.id != "" && o.owned.owner == c.title && o.owned.uid == c.uid &&
		len(o.owned.others) == 0 && (uid == "" || uid == o.uid)
}

// owner returns the component that an object names as its owner.
func (r *replay) owner(m ownership) *component {
	for _, c := range r.components {
		if c.title == m.owner && c.uid == m.uid {
			return c
		}
	}
	return nil
}
