// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/env"
)

// What controllers, the scheduler and admission do to an object must survive a
// PUT of its manifest just as what a test does in their place.
func TestAPutOfTheSameManifestChangesNothingAmongControllers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole cluster")
	}
	e := env.New(t, env.Options{Cluster: true})
	b := benchOn(t, e.Config())
	namespace := b.namespace()
	eventually(t, "the namespace has its service account", func() bool {
		return b.observe(b.desired(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: `+namespace+`}}`, "")).Existence == plan.Present
	})
	files, err := filepath.Glob("testdata/same/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]*plan.Desired{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifest, _, _ := strings.Cut(strings.ReplaceAll(string(text), "NAMESPACE", namespace), "\n---\n")
		manifest = strings.ReplaceAll(manifest, "nodeName: node-0, ", "") // there is a scheduler
		d := b.desired(manifest, v1alpha1.UpdatePolicyReplace)
		b.must(step(plan.VerbCreate, d, plan.Observation{}))
		wanted[strings.TrimSuffix(filepath.Base(file), ".yaml")] = d
	}
	settled := func(name string) func() bool {
		return func() bool { return b.observe(wanted[name]).Status.Readiness == plan.Ready }
	}
	for _, name := range []string{"pod", "persistentvolumeclaim", "job", "customresourcedefinition", "service-loadbalancer"} {
		eventually(t, name+" is ready", settled(name))
	}
	for name, d := range wanted {
		t.Run(name, func(t *testing.T) {
			var before, after plan.Observation
			eventually(t, "a replace changes nothing", func() bool {
				before = b.observe(d)
				result := b.run(step(plan.VerbReplace, d, before))
				if result.Err != nil && !execute.IsConflict(result.Err) {
					t.Fatal(result.Err)
				}
				after = result.Observation
				return result.Err == nil && after.Seen == before.Seen && after.Accepted == before.Accepted
			})
		})
	}
}
