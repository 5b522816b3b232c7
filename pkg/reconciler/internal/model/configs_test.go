// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// The objects of the small worlds.
var (
	configA  = plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	configB  = plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "b"}
	workload = plan.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}
	job      = plan.Key{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate"}
	foos     = plan.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "foos.example.com"}
	foo      = plan.Key{Group: customGroup, Kind: "Foo", Namespace: "shop", Name: "x"}
	theirFoo = plan.Key{Group: customGroup, Kind: "Foo", Namespace: "shop", Name: "theirs"}
	tenants  = plan.Key{Kind: "Namespace", Name: "tenants"}
	tenant   = plan.Key{Kind: "ConfigMap", Namespace: "tenants", Name: "a"}
	squatter = plan.Key{Kind: "ConfigMap", Namespace: "tenants", Name: "theirs"}
	fooType  = []v1alpha1.TypeInfo{{Group: customGroup, Kind: "Foo"}}
)

func want(key plan.Key, value string, change ...func(*policy.Set)) Want {
	w := Want{Key: key, Value: value, Policies: func(s *policy.Set) {
		for _, c := range change {
			c(s)
		}
	}}
	if key == foos {
		w.Defines = fooType
	}
	return w
}

// expiring is a Job that the cluster removes after its end.
func expiring(value string) Want { return expiringAs(job, value) }

func expiringAs(key plan.Key, value string) Want {
	w := want(key, value)
	w.Expires = true
	return w
}

func adoption(p v1alpha1.AdoptionPolicy) func(*policy.Set) {
	return func(s *policy.Set) { s.Adoption = p }
}
func update(p v1alpha1.UpdatePolicy) func(*policy.Set) { return func(s *policy.Set) { s.Update = p } }
func onDelete(p v1alpha1.DeletePolicy) func(*policy.Set) {
	return func(s *policy.Set) { s.Delete = p }
}
func wave(apply, remove int16) func(*policy.Set) {
	return func(s *policy.Set) { s.Order.Apply, s.Order.Delete = apply, remove }
}
func purge(at int16) func(*policy.Set) { return func(s *policy.Set) { s.Order.Purge = &at } }
func recreate(s *policy.Set)           { s.Update = v1alpha1.UpdatePolicyRecreate }
func appliedOnce(s *policy.Set)        { s.Reconcile = once }
func oncePerManifest(s *policy.Set)    { s.Reconcile = v1alpha1.ReconcilePolicyOncePerManifest }

// on makes acts of several kinds on one object.
func on(key plan.Key, kinds ...ActKind) []Act {
	var acts []Act
	for _, kind := range kinds {
		acts = append(acts, Act{Kind: kind, Key: key})
	}
	return acts
}

// of makes acts on a component.
func of(component int, kinds ...ActKind) []Act {
	var acts []Act
	for _, kind := range kinds {
		acts = append(acts, Act{Kind: kind, Component: component})
	}
	return acts
}

// wholeLife is what happens to every component.
var wholeLife = []ActKind{ActChange, ActRemove, ActCrash}

// everything is what can happen to an object that needs no controller.
var everything = []ActKind{ActCreate, ActCreateOwned, ActDrift, ActDelete, ActDeleteAnew, ActStrip, ActSteal, ActHold, ActUnhold}

func one(versions ...[]Want) [][][]Want { return [][][]Want{versions} }

// configs are the small worlds that are explored.
var configs = slices.Concat(adoptions(), []Config{
	{
		Name:       "two objects in two waves, dropped and changed",
		Components: one([]Want{want(configA, "1"), want(workload, "1", wave(1, -1))}, []Want{want(workload, "2", wave(1, -1))}, []Want{}),
		Acts:       slices.Concat(of(0, wholeLife...), on(workload, ActDelete, ActHold, ActUnhold, ActUnready, ActSteal), on(configA, ActDelete, ActStrip)),
		Fails:      true, Disturbances: 2,
	},
	{
		Name:       "requests fail",
		Components: one([]Want{want(configA, "1"), want(configB, "1", wave(1, 0))}, []Want{want(configB, "2", wave(1, 0))}),
		Acts:       of(0, wholeLife...),
		Fails:      true, Disturbances: 3,
	},
	{
		Name: "orphans",
		Components: one(
			[]Want{want(configA, "1", onDelete(v1alpha1.DeletePolicyOrphanOnApply)), want(configB, "1", onDelete(v1alpha1.DeletePolicyOrphanOnDelete))},
			[]Want{want(configB, "1", onDelete(v1alpha1.DeletePolicyOrphan))}, []Want{}),
		Acts: slices.Concat(of(0, wholeLife...), of(0, ActRecreate), on(configA, ActStrip, ActDeleteAnew, ActSteal), on(configB, ActDelete, ActHold)), Disturbances: 3,
	},
	{
		Name:       "a job that is purged",
		Components: one([]Want{want(job, "1", purge(0)), want(workload, "1", wave(1, 0))}, []Want{want(job, "2", purge(1)), want(workload, "1", wave(1, 0))}),
		Acts:       slices.Concat(of(0, wholeLife...), on(job, ActDelete, ActHold, ActUnhold, ActSteal)),
		Fails:      true, Disturbances: 2,
	},
	{
		Name:       "a job with a time to live",
		Components: one([]Want{expiring("1"), want(workload, "1", wave(1, 0))}, []Want{expiring("2"), want(workload, "1", wave(1, 0))}),
		Acts:       slices.Concat(of(0, wholeLife...), on(job, ActExpire, ActStrip, ActDrift)),
		Fails:      true, Disturbances: 2,
	},
	{
		Name:       "recreated when changed",
		Components: one([]Want{want(configA, "1", update(v1alpha1.UpdatePolicyRecreate)), want(configB, "1", wave(1, 0))}, []Want{want(configA, "2", update(v1alpha1.UpdatePolicyRecreate)), want(configB, "2", wave(1, 0))}),
		Acts:       slices.Concat(of(0, wholeLife...), on(configA, ActDelete, ActDeleteAnew, ActHold, ActUnhold, ActSteal, ActStrip)),
		Fixed:      []plan.Key{configA},
		Fails:      true, Disturbances: 2,
	},
	{
		Name:       "recreated if it cannot be changed",
		Components: one([]Want{want(configA, "1", update(v1alpha1.UpdatePolicyRecreateOnImmutable)), want(configB, "1", update(v1alpha1.UpdatePolicyRecreateOnImmutable))}, []Want{want(configA, "2", update(v1alpha1.UpdatePolicyRecreateOnImmutable))}),
		Acts:       slices.Concat(of(0, wholeLife...), on(configA, ActCreate, ActDelete, ActDeleteAnew, ActHold, ActUnhold, ActSteal, ActStrip)),
		Fixed:      []plan.Key{configA},
		Fails:      true, Disturbances: 2,
	},
	{
		Name: "the digest key is lost",
		Components: one(
			[]Want{want(configA, "1", update(v1alpha1.UpdatePolicyRecreate)), want(workload, "1", update(v1alpha1.UpdatePolicyRecreateOnImmutable)), want(configB, "1", wave(1, 0))},
			[]Want{want(configA, "2", update(v1alpha1.UpdatePolicyRecreate)), want(workload, "2", update(v1alpha1.UpdatePolicyRecreateOnImmutable))}),
		Acts:  slices.Concat(of(0, wholeLife...), []Act{{Kind: ActLoseKey}}, on(configA, ActDrift, ActDelete), on(configB, ActHold)),
		Fixed: []plan.Key{workload},
		Fails: true, Disturbances: 2,
	},
	{
		Name:       "the digest key is lost, and jobs run once",
		Components: one([]Want{want(job, "1", purge(0)), expiringAs(configA, "1"), want(configB, "1", oncePerManifest, recreate)}, []Want{want(job, "2", purge(0)), expiringAs(configA, "2"), want(configB, "1", oncePerManifest, recreate)}),
		Acts:       slices.Concat(of(0, ActChange, ActCrash), []Act{{Kind: ActLoseKey}}, on(configA, ActExpire), on(configB, ActDrift)),
		Fails:      true, Disturbances: 2,
	},
	{
		Name:       "a type and its instance",
		Components: one([]Want{want(foos, "1"), want(foo, "1")}, []Want{want(foos, "1")}, []Want{}),
		Acts:       slices.Concat(of(0, wholeLife...), on(theirFoo, ActCreate, ActDelete), on(foo, ActSteal, ActHold, ActUnhold, ActDeleteAnew), on(foos, ActDelete)), Disturbances: 3,
	},
	{
		Name:       "a type, its operator and its instance",
		Components: one([]Want{want(foos, "1"), want(workload, "1"), want(foo, "1")}, []Want{want(workload, "2"), want(foos, "1"), want(foo, "2")}),
		Acts:       slices.Concat(of(0, wholeLife...), on(workload, ActUnready, ActDelete), on(theirFoo, ActCreate), on(foo, ActDelete)), Disturbances: 3,
	},
	{
		Name:       "an orphaned instance of a type",
		Components: one([]Want{want(foos, "1"), want(foo, "1", onDelete(v1alpha1.DeletePolicyOrphan))}, []Want{want(foos, "1")}, []Want{}),
		Acts:       slices.Concat(of(0, wholeLife...), on(foo, ActStrip, ActDelete)), Disturbances: 3,
	},
	{
		Name:       "an orphaned instance of a type beside one of others",
		Components: one([]Want{want(foos, "1"), want(foo, "1", onDelete(v1alpha1.DeletePolicyOrphan))}, []Want{want(foos, "1")}, []Want{}),
		Acts:       slices.Concat(of(0, wholeLife...), on(foo, ActDelete), on(theirFoo, ActCreate, ActDelete)), Disturbances: 3,
	},
	{
		Name: "an orphan in a namespace of the manifests",
		Components: one(
			[]Want{want(tenants, "1"), want(tenant, "1", onDelete(v1alpha1.DeletePolicyOrphan))}, []Want{want(tenants, "1")}, []Want{}),
		Acts: slices.Concat(of(0, wholeLife...), on(squatter, ActCreate, ActDelete), on(tenants, ActDelete, ActSteal), on(tenant, ActStrip, ActDelete, ActSteal)), Disturbances: 3,
	},
	{
		Name:       "a namespace that is created for its content",
		Components: one([]Want{want(tenant, "1")}, []Want{}),
		Acts:       slices.Concat(of(0, wholeLife...), on(squatter, ActCreate, ActDelete), on(tenants, ActDelete, ActStrip, ActSteal, ActDeleteAnew), on(tenant, ActHold, ActUnhold)), Disturbances: 3,
	},
	{
		Name:       "a namespace that is created for its content, which cannot be read",
		Components: one([]Want{want(tenant, "1")}, []Want{}),
		Acts:       slices.Concat(of(0, ActChange, ActRemove, ActCrash), []Act{{Kind: ActHalfTimeout}}, on(squatter, ActCreate)),
		Unread:     true, Disturbances: 4,
	},
	{
		Name:       "a namespace of the manifests",
		Components: one([]Want{want(tenants, "1"), want(tenant, "1", wave(1, 0))}, []Want{want(tenant, "1", wave(1, 0))}, []Want{}),
		Acts:       slices.Concat(of(0, wholeLife...), on(squatter, ActCreate, ActDelete), on(tenants, ActDelete, ActHelm), on(tenant, ActSteal)), Disturbances: 3,
	},
	{
		Name:       "two incarnations",
		Components: one([]Want{want(configA, "1"), want(configB, "1", adoption(v1alpha1.AdoptionPolicyNever))}, []Want{want(configA, "1")}),
		Acts:       slices.Concat(of(0, wholeLife...), of(0, ActRecreate, ActForce), on(configA, ActHold, ActUnhold)), Disturbances: 3,
	},
	{
		Name:       "a forged record",
		Components: one([]Want{want(configA, "1")}, []Want{}),
		There:      []Object{{Key: configB, Value: "theirs"}, {Key: workload, Value: "theirs", OwnerID: otherOwner.ID, Ref: otherOwner.Ref, Holder: OtherOwner}},
		Acts:       slices.Concat(of(0, wholeLife...), on(configB, ActForge, ActDelete), on(workload, ActForge, ActStrip), on(configA, ActDeleteAnew)), Disturbances: 3,
	},
	{
		Name: "a forged record of what another component has left behind",
		Components: [][][]Want{
			{{want(configA, "1")}, {}},
			{{want(configB, "1", onDelete(v1alpha1.DeletePolicyOrphan))}, {}},
		},
		Acts: slices.Concat(of(0, ActChange, ActRemove), of(1, ActChange), on(configB, ActForge)), Disturbances: 3,
	},
	{
		Name:       "the label is stripped",
		Components: one([]Want{want(configA, "1"), want(configB, "1", wave(1, 0))}, []Want{want(configB, "1", wave(1, 0))}),
		Acts:       slices.Concat(of(0, wholeLife...), on(configA, ActUnlabel), on(configB, ActUnlabel)), Disturbances: 3,
	},
	{
		Name: "objects with controllers",
		Components: one([]Want{want(configA, "1"), want(configB, "1")},
			[]Want{want(configA, "2", adoption(v1alpha1.AdoptionPolicyAlways)), want(configB, "2")}, []Want{}),
		There: []Object{{Key: configA, Value: "theirs", Controlled: true, Holder: OtherOwner}},
		Acts:  slices.Concat(of(0, wholeLife...), on(configB, ActControl, ActStrip, ActDrift)), Disturbances: 3,
	},
	{
		Name:       "applied once",
		Components: one([]Want{want(configA, "1", appliedOnce), want(configB, "1")}, []Want{want(configA, "2", appliedOnce)}, []Want{}),
		Acts:       slices.Concat(of(0, wholeLife...), on(configA, ActDelete, ActDrift, ActDeleteAnew, ActSteal)), Disturbances: 3,
	},
	{
		Name:       "two leaders",
		Components: one([]Want{want(configA, "1"), want(configB, "1", wave(1, 0))}, []Want{want(configB, "2", wave(1, 0))}),
		Leaders:    2,
		Acts:       slices.Concat(of(0, ActChange, ActRemove), []Act{{Kind: ActLoseLease}}, on(configA, ActDelete, ActDeleteAnew)), Disturbances: 3,
	},
	{
		Name:       "two leaders and a type",
		Components: one([]Want{want(foos, "1"), want(foo, "1")}, []Want{}),
		Leaders:    2,
		Acts:       slices.Concat(of(0, ActChange, ActRemove), []Act{{Kind: ActLoseLease}}, on(theirFoo, ActCreate)), Disturbances: 3,
	},
	{
		Name:       "what never gets ready holds up no removal",
		Components: one([]Want{want(workload, "1"), want(configA, "1"), want(configB, "1")}, []Want{want(workload, "1")}),
		Slow:       []plan.Key{workload},
		Acts:       slices.Concat(of(0, wholeLife...), on(configA, ActHold, ActStrip), on(workload, ActDelete)), Disturbances: 3,
	},
}, shared(), watched())

// adoptions are one object that others want, too, under each policy.
func adoptions() []Config {
	var all []Config
	for _, p := range vocabulary.AdoptionPolicies {
		for _, u := range []v1alpha1.UpdatePolicy{v1alpha1.UpdatePolicyReplace, v1alpha1.UpdatePolicySsaMerge} {
			acts := slices.Concat(of(0, wholeLife...), on(configA, everything...))
			if p != v1alpha1.AdoptionPolicyAlways {
				acts = append(acts, on(configA, ActHelm)...)
			}
			all = append(all, Config{
				Name:       "adoption " + string(p) + ", " + string(u),
				Components: one([]Want{want(configA, "1", adoption(p), update(u))}, []Want{want(configA, "2", adoption(p), update(u))}, []Want{}),
				Acts:       acts, Fails: true, Disturbances: 3,
			})
		}
	}
	return all
}

// shared are two components that want the same object, under each pair of policies.
func shared() []Config {
	var all []Config
	for i, a := range vocabulary.AdoptionPolicies {
		for _, b := range vocabulary.AdoptionPolicies[i:] {
			all = append(all, Config{
				Name: "shared by " + string(a) + " and " + string(b),
				Components: [][][]Want{
					{{want(configA, "1", adoption(a))}, {}},
					{{want(configA, "2", adoption(b))}, {}},
				},
				Acts:         slices.Concat(of(0, ActChange, ActRemove), of(1, ActChange, ActRemove), []Act{{Kind: ActCrash}}),
				Disturbances: 2,
			})
		}
	}
	return all
}
