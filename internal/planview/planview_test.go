// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package planview

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/test/check"
)

func key(kind, name string) report.Key {
	return report.Key{Kind: kind, Namespace: "market", Name: name}
}

// upgrade is a plan with all that a text has to show.
func upgrade() View {
	p := component.Plan{Kind: "Shop", Namespace: "market", Name: "corner", Revision: 5, Hash: "7f3a91c2"}
	elsewhere := key("ConfigMap", "shared")
	elsewhere.Namespace = "tools"
	p.Changes = []report.PlannedChange{
		{Key: key("ConfigMap", "corner-settings"), Class: report.ChangeUpdate, Verb: "override", Batch: 1, Stage: 1, Fields: []report.FieldChange{
			{Path: "data.GREETING", Old: "Welcome", New: "Hello"}, {Path: "data.NOTE", New: "two\nlines"}, {Path: "data.OLD", Old: "x"},
		}, MoreFields: 2},
		{Key: elsewhere, Class: report.ChangeAdopt, Verb: "override", Batch: 1, Stage: 1, Fields: []report.FieldChange{{Path: "data.a", Old: "***", New: "***"}}},
		{Key: key("Deployment", "corner-api"), Class: report.ChangeRestartsPods, Verb: "override", Batch: 1, Stage: 2, Fields: []report.FieldChange{
			{Path: "spec.template.spec.containers[name=api].image", Old: "shop/api:1.2", New: "shop/api:1.3"},
		}},
		{Key: key("PodDisruptionBudget", "corner-api"), Class: report.ChangeCreate, Verb: "create", Batch: 1, Stage: 2, DependsOnCluster: "its type is not served yet"},
		{Key: key("Job", "corner-migration"), Class: report.ChangeRecreate, Verb: "delete", Batch: 2, Stage: 1, Hook: "pre-upgrade", Destructive: true},
		{Key: key("Job", "corner-migration"), Class: report.ChangeRecreate, Verb: "create", Batch: 2, Stage: 2, Hook: "pre-upgrade"},
		{Key: key("Service", "corner-legacy"), Class: report.ChangeDelete, Verb: "delete", Batch: 3, Stage: 1, Destructive: true},
		{Key: key("PersistentVolumeClaim", "corner"), Class: report.ChangeOrphan, Verb: "orphan", Batch: 3, Stage: 1},
		{Key: key("StatefulSet", "corner-db"), Class: report.ChangeRefused, Verb: "override", Batch: 3, Stage: 1, Message: "spec: Forbidden: updates to it are forbidden"},
		{Key: key("ConfigMap", "taken"), Class: report.ChangeBlocked, Message: "belongs to Helm release market/other"},
	}
	p.Until = []report.PlannedWait{
		{Batch: 2, Wait: report.Wait{Key: key("Deployment", "corner-api")}},
		{Batch: 2, Wait: report.Wait{Key: key("Deployment", "corner-cart")}},
	}
	p.Waiting = []report.Wait{{Key: key("ConfigMap", "taken"), Message: "belongs to Helm release market/other"}}
	p.Drifted = []report.Deviation{{Key: key("Deployment", "corner-cart"), Drift: report.Drift{Fields: []string{"spec.replicas"}}}}
	p.Notes = []report.Note{{Key: key("Service", "corner-legacy"), Message: "it has a foreign finalizer"}}
	p.Turn = "the next version waits for its turn"
	p.Incomplete = []string{"pre-reconcile hook 1 is not run for a plan, because it is not marked by PreviewSafe"}
	p.MissingRights = "- apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [update]\n"
	return View{Plan: p, Operator: "shop.example.com v1.3.0", Current: 4, Note: "suspended until 2026-12-01T00:00:00Z: audit", Hidden: 1}
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	check.Golden(t, filepath.Join("testdata", name), got, manifeststest.Update())
}

func TestPlansAreShownAsText(t *testing.T) {
	golden(t, "upgrade.txt", upgrade().Text())
	golden(t, "nothing.txt", View{Plan: component.Plan{Kind: "Shop", Name: "corner", Revision: 2, Plan: report.Plan{Changes: []report.PlannedChange{}}}, Current: 2}.Text())
	deletion := component.Plan{Kind: "Shop", Namespace: "market", Name: "corner", Remote: true}
	deletion.Changes = []report.PlannedChange{{Key: key("Service", "corner"), Class: report.ChangeDelete, Verb: "delete", Batch: 1, Stage: 1}}
	golden(t, "deletion.txt", View{Plan: deletion, Delete: true}.Text())
	golden(t, "revisions.txt", Changes(upgrade().Plan.Changes[:4], "market"))
}

func TestNoTextOfAPlanLooksLikeALineOfOurs(t *testing.T) {
	plan := component.Plan{Kind: "Shop", Name: "corner"}
	plan.Changes = []report.PlannedChange{{Key: key("Service", "corner"), Class: report.ChangeRefused, Message: "no\n  - Service  other\u009b2J",
		Fields: []report.FieldChange{{Path: "data.a", Old: "1", New: "2\n  - Service  other\u202e"}}}}
	plan.Waiting = []report.Wait{{Message: "a\n  - Service  other"}}
	plan.Notes = []report.Note{{Message: "a\n  - Service  other"}}
	if text := (View{Plan: plan}).Text(); strings.Contains("\n"+text, "\n  - ") || strings.ContainsAny(text, "\u009b\u202e") {
		t.Errorf("got\n%s", text)
	}
}

func TestPlansOfAllComponentsAreATable(t *testing.T) {
	nothing := View{Plan: component.Plan{Kind: "Shop", Namespace: "stage", Name: "test"}}
	rows := []Row{
		{Component: "market/corner", View: upgrade()},
		{Component: "old/legacy", Err: errors.New("it cannot be rendered:\nvalues.cache.size")},
		{Component: "stage/test", View: nothing},
	}
	for format, file := range map[string]string{"text": "all.txt", "json": "all.json"} {
		text := check.Must(FormatAll(format, "Shop", rows))(t)
		golden(t, file, text)
	}
	asYAML := check.Must(upgrade().Format("yaml"))(t)
	asJSON := check.Must(upgrade().Format("json"))(t)
	var fromYAML, fromJSON any
	if err := errors.Join(yaml.Unmarshal([]byte(asYAML), &fromYAML), json.Unmarshal([]byte(asJSON), &fromJSON)); err != nil || !cmp.Equal(fromYAML, fromJSON) {
		t.Errorf("YAML and JSON differ, error %v:\n%s", err, asYAML)
	}
	if _, err := upgrade().Format("xml"); err == nil {
		t.Error("there is no error for an unknown format")
	}
}

func TestTheExitCodeIsThatOfTheMostSeriousChange(t *testing.T) {
	of := func(classes ...report.ChangeClass) (p component.Plan) {
		for _, class := range classes {
			p.Changes = append(p.Changes, report.PlannedChange{Class: class})
		}
		return p
	}
	for _, test := range []struct {
		plan component.Plan
		want int
	}{
		{of(), 0},
		{of(report.ChangeCreate), 2},
		{of(report.ChangeUpdate, report.ChangeAdopt), 2},
		{of(report.ChangeUpdate, report.ChangeRestartsPods), 3},
		{of(report.ChangeDelete, report.ChangeCreate), 3},
		{of(report.ChangeRecreate), 3},
		{of(report.ChangeOrphan), 3},
		{of(report.ChangeRefused, report.ChangeDelete), 4},
		{of(report.ChangeBlocked), 4},
	} {
		if got := ExitCode(test.plan); got != test.want {
			t.Errorf("%v: got %d, want %d", test.plan.Changes, got, test.want)
		}
	}
}
