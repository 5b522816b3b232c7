// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/corbel-run/corbel/api/v1alpha1"

// group is the group of the components, and the prefix of their annotations.
const group = "upgrade.example.com"

// foreign is a finalizer of another client.
const foreign = "example.com/hold"

// state is a component in a state that the earlier operator brings about. The component is in a namespace of its own.
type state struct {
	name string
	// others are objects that exist before the component, as YAML.
	others string
	// component holds annotations and spec, as YAML.
	component string
	// steps lead to the state; without any the component becomes Ready.
	steps []step
	// end is a merge patch before the deletion, as YAML; empty if there is none.
	end string
}

// step is a change, and the state that follows.
type step struct {
	// patch is a merge patch of the component, as YAML.
	patch string
	// other is a merge patch of the ConfigMap of the component by another client, as YAML.
	other string
	// deleted: the component is deleted.
	deleted bool

	state    v1alpha1.State
	revision int64 // any if it is 0
	// message is a part of the message of condition Ready, or of Drifted.
	message string
	// noJob: there is no Job with the name of the component.
	noJob bool
	// chunks: the inventory is in Secrets.
	chunks bool
}

// skipHooks is a patch that lets a deletion run no hooks.
const skipHooks = "metadata: {annotations: {upgrade.example.com/skip-delete-hooks: 'true'}}"

var ready = step{state: v1alpha1.StateReady, revision: 1}

// value is the step to another value.
func value(value string, next step) step {
	next.patch = "spec: {values: {value: " + value + "}}"
	return next
}

var states = []state{
	{name: "ready"},
	{name: "history", steps: []step{
		ready, value("'2'", step{state: v1alpha1.StateReady, revision: 2}), value("'3'", step{state: v1alpha1.StateReady, revision: 3}),
	}},
	{name: "installing", component: "spec: {timeout: 10000h, values: {value: wait}}", steps: []step{{state: v1alpha1.StateProcessing, message: "ConfigMap"}}},
	{name: "upgrading", component: "spec: {timeout: 10000h}", steps: []step{ready, value("wait", step{state: v1alpha1.StateProcessing, revision: 2, message: "ConfigMap"})}},
	{name: "pulling", component: "spec: {timeout: 10000h}", steps: []step{
		ready, {patch: "spec: {values: {image: 'registry.example.com/web:broken'}}", state: v1alpha1.StateProcessing, revision: 2, message: "ImagePullBackOff"},
	}},
	{name: "timeout", component: "spec: {timeout: 5s}", steps: []step{ready, value("wait", step{state: v1alpha1.StateError, revision: 2, message: "not ready after"})}},
	{name: "rolled-back", component: "spec: {timeout: 5s, rollbackOnFailure: true}", steps: []step{
		ready, value("wait", step{state: v1alpha1.StateError, revision: 3, message: "rolled back"}),
	}},
	{name: "pinned", steps: []step{
		ready, value("'2'", step{state: v1alpha1.StateReady, revision: 2}),
		{patch: "metadata: {annotations: {upgrade.example.com/rollback-to: '1'}}", state: v1alpha1.StateReady, revision: 3, message: "pinned to revision 1"},
	}},
	{name: "approval", steps: []step{
		ready,
		{patch: "{metadata: {annotations: {upgrade.example.com/require-approval: 'true'}}, spec: {values: {value: '2'}}}", state: v1alpha1.StatePending, revision: 1, message: "approv"},
	}},
	{name: "suspended", steps: []step{ready, {patch: "spec: {suspend: true}", state: v1alpha1.StateSuspended}}},
	{name: "suspended-until", steps: []step{ready, {patch: "metadata: {annotations: {upgrade.example.com/suspend: '2100-01-01T00:00:00Z'}}", state: v1alpha1.StateSuspended}}},
	{name: "skipped", steps: []step{ready, {patch: "metadata: {annotations: {upgrade.example.com/management-policy: skip}}", state: v1alpha1.StateSuspended}},
		end: "metadata: {annotations: {upgrade.example.com/management-policy: manage}}"},
	{name: "not-rendered", steps: []step{ready, value("fail", step{state: v1alpha1.StateError, message: "the value is fail"})}, end: skipHooks},
	{name: "mistaken", steps: []step{ready, {patch: "metadata: {annotations: {upgrade.example.com/rollback-to: first}}", state: v1alpha1.StateError, message: "rollback-to"}}, end: skipHooks},
	{name: "conflict", others: "{apiVersion: v1, kind: ConfigMap, metadata: {name: conflict, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: r, meta.helm.sh/release-namespace: upgrade-conflict}}}",
		steps: []step{{state: v1alpha1.StateError, message: "conflict"}}},
	{name: "adopted", others: "{apiVersion: v1, kind: ConfigMap, metadata: {name: more}, data: {value: theirs}}",
		component: "spec: {values: {more: [{name: more, annotations: {upgrade.example.com/adoption-policy: always}}]}}"},
	{name: "missing-reference", component: "spec: {settings: {name: none}}", steps: []step{{state: v1alpha1.StatePending, message: "none"}}},
	{name: "reference", others: "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}", component: "spec: {settings: {name: settings}}"},
	{name: "hook-runs", component: "spec: {timeout: 10000h}", steps: []step{
		ready, {patch: "spec: {values: {before: {podsim.corbel.run/run-for: 10h}}}", state: v1alpha1.StateProcessing, revision: 2, message: "Job"},
	}},
	{name: "hook-failed", component: "spec: {timeout: 10000h}", steps: []step{
		ready, {patch: "spec: {values: {before: {podsim.corbel.run/exit-code: '1'}}}", state: v1alpha1.StateError, revision: 2, message: "exit code 1"},
	}},
	{name: "expired", component: "spec: {values: {job: true}}", steps: []step{{state: v1alpha1.StateReady, revision: 1, noJob: true}}},
	{name: "patched", component: "spec: {patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: patched}, data: {patched: p}}'}], images: [{name: registry.example.com/web, newTag: '2.0'}]}"},
	{name: "drifted", steps: []step{
		ready,
		{patch: "metadata: {annotations: {upgrade.example.com/drift-policy: report}}", state: v1alpha1.StateReady},
		{other: "data: {value: theirs}", state: v1alpha1.StateReady, message: "changed data.value"},
	}},
	{name: "applied", component: "spec: {values: {updatePolicy: ssa-merge}}"},
	{name: "once", component: "spec: {values: {more: [{name: more, annotations: {upgrade.example.com/reconcile-policy: once}}]}}", steps: []step{ready, value("'2'", step{state: v1alpha1.StateReady, revision: 2})}},
	{name: "typed", component: "spec: {values: {part: true}}"},
	{name: "large", component: "spec: {timeout: 10000h, values: {many: 300}}", steps: []step{{state: v1alpha1.StateReady, revision: 1, chunks: true}}},
	{name: "deleting", steps: []step{
		ready, {other: "metadata: {finalizers: [" + foreign + "]}", deleted: true, state: v1alpha1.StateDeleting, message: foreign},
	}},
	{name: "backing-up", component: "spec: {values: {end: {podsim.corbel.run/run-for: 10h}}}", steps: []step{
		ready, {deleted: true, state: v1alpha1.StateDeleting, message: "Job"},
	}, end: skipHooks},
	{name: "held", component: "metadata: {finalizers: [" + foreign + "]}", steps: []step{ready, {deleted: true, state: v1alpha1.StateDeleting}}},
}
