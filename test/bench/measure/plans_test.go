// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/env"
)

// TestEveryPlanIsMeasured goes once through the plans of a small component, so that the benchmark
// works when it is needed. That a plan has the changes that it must have, and writes nothing, is
// checked where it is measured.
func TestEveryPlanIsMeasured(t *testing.T) {
	if _, err := exec.LookPath("diff"); err != nil {
		t.Skip("kubectl diff needs the command diff")
	}
	e := env.New(t, env.Options{AuditLog: true, AuditBodies: true})
	size, err := Plans(t.Context(), e, Options{Objects: 20, Components: 1, Rounds: 1, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []report.Scenario{
		report.PlanInstall, report.PlanUnchanged, report.PlanOne, report.PlanAll, report.PlanDelete, report.ChangeAll, report.Rollback,
	} {
		for _, name := range []report.Subject{report.Corbel, report.Kubectl} {
			if samples := size.Find(scenario, name); len(samples) != 1 || samples[0].Seconds <= 0 || samples[0].CPUSeconds <= 0 {
				if name == report.Kubectl && scenario == report.Rollback {
					continue // the command has none
				}
				t.Errorf("%s: %s: %+v", name, scenario, samples)
			}
		}
	}
	for _, scenario := range []report.Scenario{report.PlanInstall, report.PlanAll, report.PlanDelete} {
		if requests := size.Find(scenario, report.Corbel).Requests(); requests < 20 {
			t.Errorf("%s: %v requests for 20 changes", scenario, requests)
		}
	}
	for _, scenario := range []report.Scenario{report.ChangeAll, report.Rollback} {
		if writes := size.Find(scenario, report.Corbel).Writes(); writes < 20 {
			t.Errorf("%s: %v writes were counted for 20 objects", scenario, writes)
		}
	}
}

func TestTrafficOfAnAuditLog(t *testing.T) {
	const objects = "/api/v1/namespaces/a/configmaps"
	traffic, err := trafficOf([]env.AuditEvent{
		{User: "me", Verb: "list", URI: objects},
		{User: "me", Verb: "get", URI: objects + "/b"},
		{User: "me", Verb: "watch", URI: objects + "?watch=true"},
		{User: "me", Verb: "patch", URI: objects + "/b?dryRun=All&force=true"},
		{User: "me", Verb: "patch", URI: objects + "/b"},
		{User: "me", Verb: "delete", URI: objects + "/b", Sent: []byte(`{"kind":"DeleteOptions","dryRun":["All"]}`)},
		{User: "me", Verb: "delete", URI: objects + "/b"},
		{User: "me", Verb: "create", URI: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		{User: "me", Verb: "create", URI: "/apis/events.k8s.io/v1/namespaces/a/events"},
		{User: "me", Verb: "update", URI: "/apis/coordination.k8s.io/v1/namespaces/a/leases/c"},
		{User: "me", Verb: "get", URI: "/apis"},
		{User: "me too", Verb: "create", URI: objects},
	}, "me")
	if err != nil {
		t.Fatal(err)
	}
	want := subject.Traffic{
		Requests: map[string]int{
			"LIST configmaps": 1, "GET configmaps": 1, "DRYRUN configmaps": 2, "PATCH configmaps": 1, "DELETE configmaps": 1,
			"POST selfsubjectaccessreviews": 1, "DISCOVERY": 1,
		},
		Watches: 1, Events: 1, Leases: 1,
	}
	if diff := cmp.Diff(want, traffic); diff != "" {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
	if got := changing(traffic); len(got) != 2 {
		t.Errorf("%v change something, want the patch and the deletion", got)
	}
}
