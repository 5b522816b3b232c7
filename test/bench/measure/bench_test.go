// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) {
	ServeSubject()
	os.Exit(env.Main(m, env.Options{}))
}

// TestEveryScenarioIsMeasured goes once through a small life, so that the benchmark
// works when it is needed. What it measures is not checked.
func TestEveryScenarioIsMeasured(t *testing.T) {
	size, err := Run(t.Context(), env.Shared(t), Options{
		Objects: 20, Components: 1, Rounds: 1, Rest: 100 * time.Millisecond, Repairs: 1, Patience: 500 * time.Millisecond, Logf: t.Logf,
	})
	check.NoError(t, err)
	for _, scenario := range []report.Scenario{
		report.Install, report.ChangeOne, report.Unchanged, report.ChangeAll, report.Rest, report.Restart, report.Drift, report.Deletion, report.Delete,
	} {
		if samples := size.Find(scenario, report.Corbel); len(samples) != 1 || samples[0].Seconds <= 0 || samples[0].Goroutines == 0 {
			t.Errorf("%s: %+v", scenario, samples)
		}
	}
	for _, scenario := range []report.Scenario{report.Install, report.ChangeAll, report.Delete} {
		if writes := size.Find(scenario, report.Corbel).Writes(); writes < 20 {
			t.Errorf("%s: %v writes were counted for 20 objects", scenario, writes)
		}
		if requests := size.Find(scenario, report.Limit).Requests(); requests != 20 {
			t.Errorf("%s: the limit is %v requests for 20 objects", scenario, requests)
		}
	}
	if size.Status.Component == 0 || slices.Contains([]string{size.Where.Go, size.Where.Kubernetes}, "") {
		t.Errorf("%+v, %+v", size.Status, size.Where)
	}
}

// TestEveryPlanIsMeasured goes once through the plans of a small component, so that the benchmark
// works when it is needed. That a plan has the changes that it must have, and writes nothing, is
// checked where it is measured.
func TestEveryPlanIsMeasured(t *testing.T) {
	if _, err := exec.LookPath("diff"); err != nil {
		t.Skip("kubectl diff needs the command diff")
	}
	e := env.New(t, env.Options{AuditLog: true, AuditBodies: true})
	size := check.Must(Plans(t.Context(), e, Options{Objects: 20, Components: 1, Rounds: 1, Logf: t.Logf}))(t)
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
