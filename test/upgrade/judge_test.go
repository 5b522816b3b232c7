// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestWritesThatAnUpgradeMustNotSendAreFound(t *testing.T) {
	job := env.AuditEvent{Verb: "create", Group: "batch", Resource: "jobs", Namespace: "upgrade-ready", Code: 201, Sent: []byte(`{"metadata":{"name":"before"}}`)}
	check.Fails(t, judge([]env.AuditEvent{job}), "Site upgrade-ready/ready: the operator sends create jobs upgrade-ready/before, answered with 201")
	for name, q := range map[string]env.AuditEvent{
		"a refused update":          {Verb: "update", Resource: "configmaps", Namespace: "upgrade-ready", Name: "ready", Code: 409},
		"a label of a type":         {Verb: "patch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "parts." + group, Code: 200},
		"a creation of what exists": {Verb: "create", Resource: "configmaps", Namespace: "upgrade-ready", Name: "ready", Code: 409},
		"a key in another namespace": {Verb: "create", Resource: "secrets", Namespace: "upgrade-ready", Name: group + "-digest-key", Code: 409,
			User: "system:serviceaccount:site-system:site"},
		"a Secret":             {Verb: "delete", Resource: "secrets", Namespace: "upgrade-ready", Name: "ready", Code: 200},
		"the component itself": {Verb: "update", Group: group, Resource: "sites", Namespace: "upgrade-ready", Name: "ready", Code: 200},
	} {
		if err := judge([]env.AuditEvent{q}); err == nil {
			t.Errorf("%s is not found", name)
		}
	}
	status := env.AuditEvent{Verb: "patch", Group: group, Resource: "sites", Subresource: "status", Namespace: "upgrade-ready", Name: "ready", Code: 200}
	check.NoError(t, judge([]env.AuditEvent{status}))
	check.Fails(t, judge([]env.AuditEvent{status, status}), "Site upgrade-ready/ready", "the status 2 times")
}

func TestWhatAnUpgradeMaySend(t *testing.T) {
	check.NoError(t, judge([]env.AuditEvent{
		{Verb: "get", Resource: "configmaps", Namespace: "upgrade-ready", Name: "ready", Code: 200},
		{Verb: "patch", Resource: "configmaps", Namespace: "upgrade-ready", Name: "ready", URI: "/api/v1/namespaces/upgrade-ready/configmaps/ready?dryRun=All", Code: 200},
		{Verb: "delete", Group: "batch", Resource: "jobs", Namespace: "upgrade-ready", Name: "before", Code: 200, Sent: []byte(`{"kind":"DeleteOptions","dryRun":["All"]}`)},
		{Verb: "create", Group: "events.k8s.io", Resource: "events", Namespace: "upgrade-ready", Code: 201},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "site-system", Code: 200},
		{Verb: "create", Resource: "secrets", Namespace: "site-system", Name: "upgrade.example.com-digest-key", Code: 409, User: "system:serviceaccount:site-system:site"},
		{Verb: "create", Resource: "configmaps", Namespace: "upgrade-conflict", Name: "conflict", Code: 409},
		{Verb: "create", Resource: "secrets", Namespace: "upgrade-large", Code: 201, Sent: []byte(`{"metadata":{"name":"large-inventory-1-0"}}`)},
	}))
}

func TestAnotherRevisionOrConditionIsADifference(t *testing.T) {
	before := component.Status{Revision: 1, History: []v1alpha1.RevisionStatus{{Revision: 1, Digest: "a"}}, Conditions: []metav1.Condition{{Type: "Ready", Reason: "Ready"}}}
	after := *before.DeepCopy()
	after.LastHandledReconcileAt, after.History[0].Generator = "again", "g"
	check.Same(t, "", difference(before, after))
	for _, change := range []func(*component.Status){
		func(s *component.Status) { s.Revision = 2 },
		func(s *component.Status) { s.History[0].Digest = "b" },
		func(s *component.Status) { s.Conditions[0].Reason = "Error" },
	} {
		after := *before.DeepCopy()
		change(&after)
		if difference(before, after) == "" {
			t.Errorf("no difference between %+v and %+v", before, after)
		}
	}
}

func TestAReconcileCountsWhenItHasStartedAndEnded(t *testing.T) {
	const log = `{"msg":"Reconcile successful","namespace":"a","name":"before","reconcileID":"0"}
{"msg":"Reconciling","namespace":"a","name":"ended","reconcileID":"1"}
{"msg":"Reconciling","namespace":"a","name":"running","reconcileID":"2"}
no JSON
{"msg":"Reconcile done, requeueing after 1s","namespace":"a","name":"ended","reconcileID":"1"}
{"msg":"Reconciling","namespace":"a","name":"failed","reconcileID":"3"}
{"msg":"Reconciler error","namespace":"a","name":"failed","reconcileID":"3"}
`
	check.Equal(t, map[client.ObjectKey]bool{{Namespace: "a", Name: "ended"}: true, {Namespace: "a", Name: "failed"}: true}, reconciledIn([]byte(log)))
}
