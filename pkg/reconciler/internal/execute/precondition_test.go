// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// writes are all ways to write an existing object.
var writes = map[plan.Verb]v1alpha1.UpdatePolicy{
	plan.VerbReplace:  v1alpha1.UpdatePolicyReplace,
	plan.VerbMerge:    v1alpha1.UpdatePolicySsaMerge,
	plan.VerbOverride: v1alpha1.UpdatePolicySsaOverride,
	plan.VerbOrphan:   v1alpha1.UpdatePolicyReplace,
	plan.VerbDelete:   v1alpha1.UpdatePolicyReplace,
}

func configMap(namespace, name string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + namespace + `, name: ` + name + `}, data: {key: value}}`
}

func TestACreateDemandsAbsence(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for _, policy := range []v1alpha1.UpdatePolicy{
		v1alpha1.UpdatePolicyReplace, v1alpha1.UpdatePolicyRecreate, v1alpha1.UpdatePolicySsaMerge, v1alpha1.UpdatePolicySsaOverride,
	} {
		d := b.desired(configMap(namespace, unique("map")), policy)
		b.requests()
		created := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		if sent := len(b.requests()); sent > 2 { // and discovery, once
			t.Errorf("%s: the create took %d requests", policy, sent)
		}
		if diff := cmp.Diff(b.observe(d), created); diff != "" || created.Existence != plan.Present {
			t.Errorf("%s: a read and the answer to the write differ (-read +answer):\n%s", policy, diff)
		}
		if created.Marks.OwnerID != ownerID || created.Marks.Ref != ownerRef {
			t.Errorf("%s: got marks %+v", policy, created.Marks)
		}
		if again := b.run(step(plan.VerbCreate, d, plan.Observation{})); !execute.IsConflict(again.Err) || again.Observation.Existence != plan.Unknown {
			t.Errorf("%s: a second create: got %+v", policy, again)
		}
		if live := b.observe(d); live.ResourceVersion != created.ResourceVersion {
			t.Errorf("%s: the second create changed the object", policy)
		}
	}
}

func TestAWriteIsAConflictIfTheObjectChanged(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for verb, policy := range writes {
		d := b.desired(configMap(namespace, unique("map")), policy)
		seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		changed := b.somebody(d, `data: {other: value}`)
		result := b.run(step(verb, d, seen))
		switch {
		case verb == plan.VerbDelete && (result.Err != nil || result.Observation.Existence != plan.Absent),
			verb == plan.VerbOrphan && (result.Err != nil || result.Observation.Marks.OwnerID != ""):
			t.Errorf("%s: it is still meant for the object, got %+v", verb, result)
		}
		if verb == plan.VerbDelete || verb == plan.VerbOrphan {
			continue
		}
		if !execute.IsConflict(result.Err) {
			t.Errorf("%s: got %v", verb, result.Err)
		}
		if live := b.live(d); live.GetResourceVersion() != changed.GetResourceVersion() {
			t.Errorf("%s: it changed the object", verb)
		}
	}
}

func TestAWriteIsAConflictIfTheObjectIsAnotherOne(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for verb, policy := range writes {
		d := b.desired(configMap(namespace, unique("map")), policy)
		first := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		b.must(step(plan.VerbDelete, d, first))
		second := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		mixed := second
		mixed.UID = first.UID
		for what, live := range map[string]plan.Observation{"as it was": first, "with the uid only": mixed} {
			if result := b.run(step(verb, d, live)); !execute.IsConflict(result.Err) {
				t.Errorf("%s %s: got %v", verb, what, result.Err)
			}
		}
		if live := b.observe(d); live.ResourceVersion != second.ResourceVersion {
			t.Errorf("%s: it changed the other object", verb)
		}
	}
}

func TestAWriteOfAVanishedObjectCreatesNothing(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for verb, policy := range writes {
		d := b.desired(configMap(namespace, unique("map")), policy)
		seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		b.must(step(plan.VerbDelete, d, seen))
		result := b.run(step(verb, d, seen))
		switch verb {
		case plan.VerbDelete, plan.VerbOrphan:
			if result.Err != nil || result.Observation.Existence != plan.Absent {
				t.Errorf("%s: got %+v", verb, result)
			}
		default:
			if !execute.IsConflict(result.Err) {
				t.Errorf("%s: got %v", verb, result.Err)
			}
		}
		if live := b.observe(d); live.Existence != plan.Absent {
			t.Errorf("%s: it created the object", verb)
		}
	}
}

func TestNothingIsWrittenWithoutAPrecondition(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for verb, policy := range writes {
		d := b.desired(configMap(namespace, unique("map")), policy)
		seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		if result := b.run(step(verb, d, plan.Observation{})); result.Err == nil || execute.IsConflict(result.Err) {
			t.Errorf("%s: got %v", verb, result.Err)
		}
		if live := b.observe(d); live.ResourceVersion != seen.ResourceVersion {
			t.Errorf("%s: it changed the object", verb)
		}
	}
}
