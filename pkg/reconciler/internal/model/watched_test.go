// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// behind lets the watch of the first leader fall behind.
func behind(keys ...plan.Key) []Act {
	var acts []Act
	for _, key := range keys {
		acts = append(acts, on(key, ActDelay)...)
	}
	return acts
}

// behindFor lets the watch of a leader fall behind.
func behindFor(leader int8, keys ...plan.Key) []Act {
	acts := behind(keys...)
	for i := range acts {
		acts[i].Leader = leader
	}
	return acts
}

// watched are the small worlds in which leaders know objects from a watch with
// events may be late.
func watched() []Config {
	all := slices.Concat(watchedAdoptions(), []Config{
		{
			Name:       "watched: two objects in two waves",
			Components: one([]Want{want(configA, "1"), want(workload, "1", wave(1, -1))}, []Want{want(workload, "2", wave(1, -1))}, []Want{}),
			Acts:       slices.Concat(of(0, wholeLife...), behind(configA, workload), on(workload, ActDelete, ActUnready), on(configA, ActDeleteAnew)),
		},
		{
			Name:       "watched: requests fail",
			Components: one([]Want{want(configA, "1")}, []Want{want(configA, "2")}, []Want{}),
			Acts:       slices.Concat(of(0, wholeLife...), behind(configA), on(configA, ActDrift, ActDelete, ActHold, ActUnhold)),
			Fails:      true,
		},
		{
			Name: "watched: orphans",
			Components: one(
				[]Want{want(configA, "1", onDelete(v1alpha1.DeletePolicyOrphanOnApply)), want(configB, "1", onDelete(v1alpha1.DeletePolicyOrphanOnDelete))},
				[]Want{want(configB, "1")}, []Want{}),
			Acts: slices.Concat(of(0, wholeLife...), behind(configA, configB), on(configA, ActStrip, ActSteal), on(configB, ActDelete)),
		},
		{
			Name:       "watched: a job that is purged",
			Components: one([]Want{want(job, "1", purge(0)), want(configA, "1", wave(1, 0))}, []Want{want(job, "2", purge(1))}),
			Acts:       slices.Concat(of(0, wholeLife...), behind(job), on(job, ActDelete, ActSteal, ActHold)),
			Fails:      true,
		},
		{
			Name:       "watched: applied once",
			Components: one([]Want{want(configA, "1", appliedOnce)}, []Want{want(configA, "2", appliedOnce)}, []Want{}),
			Acts:       slices.Concat(of(0, wholeLife...), behind(configA), on(configA, ActDelete, ActDrift, ActDeleteAnew, ActStrip, ActSteal)),
			Fails:      true,
		},
		{
			Name:       "watched: recreated when changed",
			Components: one([]Want{want(configA, "1", recreate)}, []Want{want(configA, "2", recreate)}),
			Acts:       slices.Concat(of(0, wholeLife...), behind(configA), on(configA, ActDelete, ActDeleteAnew, ActHold, ActSteal)),
			Fixed:      []plan.Key{configA},
			Fails:      true,
		},
		{
			Name:       "watched: a type and its instance",
			Components: one([]Want{want(foos, "1"), want(foo, "1")}, []Want{want(foos, "1")}, []Want{}),
			Acts:       slices.Concat(of(0, wholeLife...), behind(foos, foo), on(theirFoo, ActCreate), on(foo, ActHold, ActDelete), on(foos, ActDelete)),
		},
		{
			Name:       "watched: a namespace of the manifests",
			Components: one([]Want{want(tenants, "1"), want(tenant, "1")}, []Want{want(tenant, "1")}, []Want{}),
			Acts:       slices.Concat(of(0, wholeLife...), behind(tenants, tenant), on(squatter, ActCreate), on(tenants, ActDelete, ActDeleteAnew), on(tenant, ActDelete)),
		},
		{
			Name:       "watched: a namespace that is created for its content",
			Components: one([]Want{want(tenant, "1")}, []Want{}),
			Acts:       slices.Concat(of(0, wholeLife...), behind(tenants, tenant), on(squatter, ActCreate), on(tenants, ActDelete, ActStrip, ActDeleteAnew), on(tenant, ActHold)),
		},
		{
			Name:       "watched: two incarnations",
			Components: one([]Want{want(configA, "1")}, []Want{}),
			Acts:       slices.Concat(of(0, wholeLife...), of(0, ActRecreate, ActForce), behind(configA), on(configA, ActHold, ActUnhold)),
			Fails:      true,
		},
		{
			Name:       "watched: an object of an earlier incarnation",
			Components: one([]Want{want(configA, "1")}, []Want{}),
			There:      []Object{{Key: configA, Value: "theirs", OwnerID: ownerOf(0, 0).ID, Ref: ownerOf(0, 0).Ref, Holder: Holder(ownerOf(0, 0).Ref.UID)}},
			Acts:       slices.Concat(of(0, wholeLife...), behind(configA), on(configA, ActSteal, ActStrip)),
			Fails:      true,
		},
		{
			Name:       "watched: two leaders",
			Components: one([]Want{want(configA, "1"), want(configB, "1", wave(1, 0))}, []Want{want(configB, "2", wave(1, 0))}),
			Leaders:    2,
			Acts:       slices.Concat(of(0, ActChange, ActRemove), []Act{{Kind: ActLoseLease}}, behindFor(0, configA), behindFor(1, configA, configB), on(configA, ActDelete)),
		},
		{
			Name:       "watched: two leaders and a type",
			Components: one([]Want{want(foos, "1"), want(foo, "1")}, []Want{}),
			Leaders:    2,
			Acts:       slices.Concat(of(0, ActChange, ActRemove), []Act{{Kind: ActLoseLease}}, behindFor(0, foo), behindFor(1, foos), on(theirFoo, ActCreate)),
		},
	}, watchedShared())
	for i := range all {
		all[i].Watched = true
	}
	return all
}

// watchedAdoptions are one object that others want, too, under each policy.
func watchedAdoptions() []Config {
	var all []Config
	for _, p := range vocabulary.AdoptionPolicies {
		acts := slices.Concat(of(0, wholeLife...), behind(configA), on(configA, everything...))
		if p != v1alpha1.AdoptionPolicyAlways {
			acts = append(acts, on(configA, ActHelm)...)
		}
		all = append(all, Config{
			Name:       "watched: adoption " + string(p),
			Components: one([]Want{want(configA, "1", adoption(p))}, []Want{want(configA, "2", adoption(p))}, []Want{}),
			Acts:       acts, Fails: true,
		})
	}
	return all
}

// watchedShared are two components that want the same object and share a watch.
func watchedShared() []Config {
	var all []Config
	for _, p := range []v1alpha1.AdoptionPolicy{v1alpha1.AdoptionPolicyIfUnowned, v1alpha1.AdoptionPolicyAlways, v1alpha1.AdoptionPolicyIgnore} {
		all = append(all, Config{
			Name: "watched: shared by IfUnowned and " + string(p),
			Components: [][][]Want{
				{{want(configA, "1")}, {}},
				{{want(configA, "2", adoption(p))}, {}},
			},
			Acts: slices.Concat(of(0, ActChange, ActRemove), of(1, ActChange, ActRemove), behind(configA), []Act{{Kind: ActCrash}}),
		})
	}
	return all
}
