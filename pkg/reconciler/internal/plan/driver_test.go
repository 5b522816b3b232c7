// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// errCrash is how a reconcile ends that was stopped.
var errCrash = errors.New("crash")

// driver does with the planner what the runtime does: observe, plan, record,
// execute, fold, until a plan has no steps; then it keeps the record.
type driver struct {
	world   *world
	cause   Cause
	desired []Desired
	// hooks are the objects that run before and after the deletion.
	hooks     []Desired
	skipHooks bool
	// gone is durable, too: the deletion was done.
	gone    bool
	managed []v1alpha1.TypeInfo
	missing v1alpha1.MissingNamespacesPolicy
	retain  map[Key]bool
	// conflicts are the objects that another client changes again and again.
	conflicts map[Key]Conflict
	// watches is set if objects are known from a watch, assumesAbsence if those of which
	// nothing is known are assumed not to exist.
	watches, assumesAbsence bool
	looks                   map[Key]int
	// durable is the record on the server. Nothing else survives a crash.
	durable []v1alpha1.InventoryItem

	// crashAt is the event before which the driver stops: the record and
	// every step are events, counted from 1; zero means never.
	crashAt, events int
	// timedOut: the objects have not become ready in time.
	timedOut bool
	// observer is called with every plan and the results of its steps.
	observer func(p Plan, results []Result)
}

// newDriver returns a driver in a world with the namespace of the component.
func newDriver() *driver {
	d := &driver{world: newWorld(), missing: v1alpha1.MissingNamespacesPolicyCreate, observer: func(Plan, []Result) {}}
	d.world.put(object{key: namespaceKey(theOwner.Ref.Namespace)})
	return d
}

// event counts what would be lost in a crash, and reports whether it comes now.
func (d *driver) event() bool {
	d.events++
	return d.events == d.crashAt
}

// input is what the planner gets at the start of a reconcile.
func (d *driver) input() Input {
	in := Input{
		Cause: d.cause, Name: reconcilerName, Owner: theOwner, ManagedTypes: d.managed, MissingNamespaces: d.missing, Retain: d.retain, TimedOut: d.timedOut,
		Recorded: d.load(), Live: map[Key]Observation{}, Failed: map[Key]Failure{}, DryRunAccepted: map[Key]bool{}, Now: d.world.now, Timeout: 10 * time.Minute,
	}
	switch {
	case d.cause == Applying:
		in.Desired = slices.Concat(d.desired, d.hooks)
	case !d.skipHooks && !d.gone:
		in.Desired = d.hooks
	}
	items := map[Key]*v1alpha1.InventoryItem{}
	for i := range in.Recorded {
		items[KeyOf(in.Recorded[i])] = &in.Recorded[i]
	}
	d.looks, d.assumesAbsence = map[Key]int{}, mayAssumeAbsence(in, items)
	for i := range in.Desired {
		key := in.Desired[i].Key
		in.Live[key] = d.look(key, &in.Desired[i], items[key])
	}
	for key, item := range items {
		if _, looked := in.Live[key]; !looked {
			in.Live[key] = d.look(key, nil, item)
		}
	}
	for _, key := range Namespaces(in.Desired, in.Live) {
		in.Live[key] = d.look(key, nil, items[key])
	}
	in.Conflicts = d.conflicts
	d.findDrift(in)
	d.compare(in)
	return in
}

// compare says which objects of an unknown manifest differ from the desired one.
func (d *driver) compare(in Input) {
	for _, desired := range in.Desired {
		live, o := in.Live[desired.Key], d.world.objects[desired.Key]
		unknown := slices.ContainsFunc(in.Recorded, func(item v1alpha1.InventoryItem) bool { return KeyOf(item) == desired.Key && IsRekeyed(item) })
		value, _, _ := valueIn(desired)
		live.Differs = unknown && o != nil && live.AppliedHash != "" && o.value != value
		in.Live[desired.Key] = live
	}
}

// findDrift says which manager changed the objects that are not as recorded.
func (d *driver) findDrift(in Input) {
	for _, item := range in.Recorded {
		live, o := in.Live[KeyOf(item)], d.world.objects[KeyOf(item)]
		if o != nil && live.AppliedHash != "" && live.AppliedHash != item.AppliedHash {
			live.Drift = &report.Drift{Fields: []string{"value"}, Manager: o.by, At: o.changed}
			in.Live[KeyOf(item)] = live
		}
	}
}

// load reads the record as a new process would.
func (d *driver) load() []v1alpha1.InventoryItem {
	data, err := json.Marshal(d.durable)
	if err != nil {
		panic(err)
	}
	var items []v1alpha1.InventoryItem
	if err := json.Unmarshal(data, &items); err != nil {
		panic(err)
	}
	return items
}

// reconcile runs until nothing is left to do, and returns the last plan. It fails
// if it was stopped, or if the planner found a mistake.
func (d *driver) reconcile() (Plan, error) {
	in, retried := d.input(), false
	for range 10 + 3*(len(in.Desired)+len(in.Recorded)) {
		p, err := Next(in)
		if err != nil {
			return p, err
		}
		if len(p.Steps) == 0 {
			if d.event() {
				return p, errCrash
			}
			d.observer(p, nil)
			d.durable = p.Inventory
			d.gone = d.cause == Deleting && p.Done()
			return p, nil
		}
		if p.MustRecord {
			if d.event() {
				return p, errCrash
			}
			d.durable = p.Inventory
		}
		results, err := d.execute(p.Steps, in)
		d.observer(p, results)
		if err != nil {
			return p, err
		}
		in.Recorded = Fold(p.Inventory, in.Live, results, metav1.NewTime(d.world.now))
		d.compare(in)
		retried = retried || DropResolvedFailures(in, results)
	}
	return Plan{}, fmt.Errorf("the pass does not end")
}

// execute runs the steps stage by stage; a failure holds back the later stages.
func (d *driver) execute(steps []Step, in Input) ([]Result, error) {
	var results []Result
	failed := in.Failed
	for i, s := range steps {
		if i > 0 && s.Stage != steps[i-1].Stage && failedIn(results) {
			break
		}
		if d.event() {
			return results, errCrash
		}
		d.checkRecorded(s)
		r := d.world.execute(s)
		results = append(results, r)
		if s.Verb == VerbDryRun && r.Err == nil {
			in.DryRunAccepted[s.Key] = true
			continue
		}
		delete(failed, s.Key)
		if r.Observation.Existence != Unknown {
			d.world.learn(s.Key)
		}
		switch {
		case r.Err != nil && d.again(in, r, in.Live[s.Key].Existence == NotFetched):
		case r.Blocked != "":
			failed[s.Key] = Failure{Blocked: true, Message: r.Blocked}
		case r.Err != nil:
			failure := Failure{Immutable: errors.Is(r.Err, errImmutable), AlreadyAllocated: errors.Is(r.Err, errAllocated), Message: fmt.Sprintf("%s %s: %s", s.Verb, s.Key, r.Err)}
			if errors.Is(r.Err, errDead) {
				failure.Webhook = deadWebhook
			}
			failed[s.Key] = failure
		}
	}
	return results, nil
}

func failedIn(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return r.Err != nil || r.Blocked != "" })
}

// checkRecorded finds steps on objects that would be unknown after a crash.
func (d *driver) checkRecorded(s Step) {
	recorded := slices.ContainsFunc(d.durable, func(item v1alpha1.InventoryItem) bool { return KeyOf(item) == s.Key })
	if !recorded {
		d.world.violate("%s %s: is not in the record on the server", s.Verb, s.Key)
	}
}

// defaultPolicies are the documented defaults.
func defaultPolicies() policy.Set {
	return policy.Set{
		Adoption: v1alpha1.AdoptionPolicyIfUnowned, Reconcile: v1alpha1.ReconcilePolicyOnObjectChange,
		Update: v1alpha1.UpdatePolicyReplace, Delete: v1alpha1.DeletePolicyDelete,
		Drift: v1alpha1.DriftPolicyRepair,
	}
}

// desiredObject makes a desired object of a value, which stands for the fields of its manifest.
func desiredObject(key Key, value string, policies policy.Set, defines ...v1alpha1.TypeInfo) Desired {
	manifest := &unstructured.Unstructured{Object: map[string]any{"value": value}}
	manifest.SetLabels(map[string]string{reconcilerName + "/" + vocabulary.LabelOwnerID: theOwner.ID})
	manifest.SetAnnotations(map[string]string{reconcilerName + "/" + vocabulary.AnnotationOwner: theOwner.Ref.String()})
	d := Desired{Key: key, Version: "v1", Policies: policies, Defines: defines, Manifest: manifest}
	// Policies are annotations of the manifest, so they are part of its digest.
	purge := "none"
	if at := policies.Order.Purge; at != nil {
		purge = fmt.Sprint(*at)
	}
	d.Digest = fmt.Sprint(value, policies.Adoption, policies.Reconcile, policies.Update, policies.Delete,
		policies.Order.Apply, policies.Order.Delete, purge, policies.Reapply, policies.DependsOn, policies.RunOn)
	if policies.Drift != v1alpha1.DriftPolicyRepair {
		d.Digest += string(policies.Drift)
	}
	if policies.Revision != "" {
		d.Digest = WithRevision(d.Digest, policies.Revision)
	}
	return d
}

func valueIn(d Desired) (string, bool, error) {
	return unstructured.NestedString(d.Manifest.Object, "value")
}

// What the driver knows of objects without reading them, as the runtime does: from
// the watch of everything that has the label of the reconciler, and from the
// record, which says what was never created.

// labelled is the object as it is in the watch, if it is.
func (w *world) labelled(key Key) Observation {
	if o := w.objects[key]; o != nil && o.ownership.OwnerID != "" {
		return o.observation(false)
	}
	return Observation{}
}

// delay lets the watch deliver no events of an object from now on.
func (w *world) delay(key Key) { w.late[key] = w.labelled(key) }

// learn records an answer about an object, which is newer than what the watch reported.
func (w *world) learn(key Key) {
	if _, late := w.late[key]; late {
		w.delay(key)
	}
}

// watched is what the watch reports.
func (w *world) watched(key Key) Observation {
	if reported, late := w.late[key]; late {
		return reported
	}
	return w.labelled(key)
}

// look returns what is known of an object at the start of a reconcile, and reads it only
// if that is not enough.
func (d *driver) look(key Key, desired *Desired, item *v1alpha1.InventoryItem) Observation {
	if !d.world.serves(key.GroupKind()) {
		return d.world.observe(key, desired != nil)
	}
	if reported := d.world.watched(key); d.watches && reported.Existence == Present {
		if theOwner.Owns(reported.Ownership) && (desired == nil || !asksForAccepted(desired, item, reported)) {
			return reported
		}
	} else if desired != nil && d.assumesAbsence && unconfirmed(item) && !desired.Policies.Adopts().IgnoresOthers {
		return Observation{Existence: NotFetched}
	}
	found := d.read(key, desired != nil)
	if found.Existence == Absent && item != nil {
		found.Finish = d.world.left[item.UID]
	}
	return found
}

// read asks for an object.
func (d *driver) read(key Key, desired bool) Observation {
	found := d.world.observe(key, desired)
	if found.Existence == Present {
		d.world.learn(key)
	}
	return found
}

// asksForAccepted reports whether the values at the paths of the manifest matter.
func asksForAccepted(desired *Desired, item *v1alpha1.InventoryItem, reported Observation) bool {
	if item == nil || item.Digest == "" || item.UID != reported.UID {
		repeated := []v1alpha1.ReconcilePolicy{v1alpha1.ReconcilePolicyOnObjectChange, v1alpha1.ReconcilePolicyOnObjectOrComponentChange}
		return !slices.Contains(repeated, desired.Policies.Reconcile)
	}
	return item.ObservedHash != reported.ObservedHash
}

// unconfirmed reports whether no write of the object was ever answered.
func unconfirmed(item *v1alpha1.InventoryItem) bool {
	return item == nil || item.UID == "" && item.Digest == "" && item.Phase == vocabulary.PhaseApplied
}

// mayAssumeAbsence reports whether creations may find out by themselves that objects exist.
func mayAssumeAbsence(in Input, items map[Key]*v1alpha1.InventoryItem) bool {
	return in.Cause == Applying && !slices.ContainsFunc(in.Desired, func(d Desired) bool {
		return d.Policies.Adopts().RefusesAll() && unconfirmed(items[d.Key])
	})
}

// maxLooks is how often an object is looked at again in one reconcile because it was not
// as it was seen.
const maxLooks = 3

// again reads the object of a step that was refused, if the refusal says that it,
// or its namespace, is not as it was seen, or was not looked for. It reports whether
// that is all; otherwise the step has failed.
func (d *driver) again(in Input, r Result, blind bool) bool {
	switch {
	case r.Err == errConflict || r.Err == errExists:
		d.looks[r.Step.Key]++
		return d.looks[r.Step.Key] <= maxLooks || blind
	case blind:
		return r.Err != errLost
	case r.Err == errNoNamespace || r.Err == errTerminating:
		namespace := namespaceKey(r.Step.Key.Namespace)
		in.Live[namespace] = d.read(namespace, false)
		d.looks[r.Step.Key]++
		return d.looks[r.Step.Key] <= maxLooks
	default:
		return false
	}
}
