// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// data returns the keys and values of a ConfigMap.
func data(b *bench, d *plan.Desired) map[string]any {
	values, _ := b.live(d).Object["data"].(map[string]any)
	return values
}

func withData(namespace, name, values string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + namespace + `, name: ` + name + `}, data: ` + values + `}`
}

func TestAChangeFromReplaceToApplyLeavesNothingBehind(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for _, verb := range applyVerbs {
		name := unique("map")
		d := b.desired(withData(namespace, name, `{a: "1", dropped: "1"}`), v1alpha1.UpdatePolicyReplace)
		created := b.must(step(plan.VerbCreate, d, plan.Observation{}))

		d = b.desired(withData(namespace, name, `{a: "1"}`), writes[verb])
		migrated := b.must(step(verb, d, created))
		if got := data(b, d); len(got) != 1 || got["a"] != "1" {
			t.Errorf("%s: the field that the manifest dropped is still there: %v", verb, got)
		}
		entries := b.live(d).GetManagedFields()
		if len(entries) != 1 || entries[0].Operation != metav1.ManagedFieldsOperationApply || entries[0].Manager != "corbel" {
			t.Errorf("%s: got managers %v", verb, entries)
		}
		b.requests()
		b.must(step(verb, d, migrated))
		check.SameNamed(t, string(verb)+": after the migration the requests were", "PATCH", methods(b.requests()))
	}
}

func TestMergeKeepsTheFieldsOfKubectlAndOverrideAndReplaceDoNot(t *testing.T) {
	b := newBench(t)
	e := env.Shared(t)
	namespace := b.namespace()
	kubectl := func(input string, arguments ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), e.Program("kubectl"), append([]string{"--kubeconfig", e.Kubeconfig(), "-n", namespace}, arguments...)...)
		command.Stdin = strings.NewReader(input)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	for _, tc := range []struct {
		verb      plan.Verb
		arguments []string
		kept      bool
	}{
		{plan.VerbMerge, []string{"apply", "-f", "-"}, true},
		{plan.VerbReplace, []string{"apply", "-f", "-"}, false},
		{plan.VerbOverride, []string{"apply", "-f", "-"}, false},
		{plan.VerbOverride, []string{"create", "-f", "-"}, false},
		{plan.VerbOverride, []string{"apply", "--server-side", "-f", "-"}, false},
	} {
		name := unique("map")
		kubectl(withData(namespace, name, `{a: "1", theirs: "1"}`), tc.arguments...)
		d := b.desired(withData(namespace, name, `{a: "2"}`), writes[tc.verb])
		adopted := b.must(step(tc.verb, d, b.observe(d)))
		if _, kept := data(b, d)["theirs"]; kept != tc.kept || data(b, d)["a"] != "2" {
			t.Errorf("%s after %v: got %v", tc.verb, tc.arguments, data(b, d))
		}
		if _, kept := b.live(d).GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]; kept && !tc.kept {
			t.Errorf("%s after %v: the annotation of kubectl is still there", tc.verb, tc.arguments)
		}
		next := "PATCH"
		if tc.verb == plan.VerbReplace {
			next = "PUT"
		}
		b.requests()
		b.must(step(tc.verb, d, adopted))
		if got := methods(b.requests()); got != next {
			t.Errorf("%s after %v: the next write took %s", tc.verb, tc.arguments, got)
		}
	}
}

// A definition drops a version in which the object was written before. The server
// converts the object to the version of each entry of managedFields when it is
// applied, and cannot do so any more.
func TestAnApplySurvivesTheRemovalOfAVersionThatManagersUsed(t *testing.T) {
	b := newBench(t)
	kind := strings.ReplaceAll("Versioned"+unique(""), "-", "")
	plural := strings.ToLower(kind) + "s"
	const schema = `{openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
		a: {type: string}, b: {type: string}, dropped: {type: string}, theirs: {type: string}}}}}}`
	definitionOf := func(kind, plural, versions string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ` + plural + `.apply.example.com}, spec: {
			group: apply.example.com, scope: Namespaced, names: {kind: ` + kind + `, plural: ` + plural + `}, versions: [` + versions + `]}}`
	}
	definition := func(versions string) string { return definitionOf(kind, plural, versions) }
	// Another type of the group still has the version.
	b.create(definitionOf("Other"+kind, "other"+plural, `{name: v1alpha1, served: true, storage: true, schema: `+schema+`}`))
	const current = `{name: v1, served: true, storage: true, schema: ` + schema + `}`
	crd := b.desired(definition(`{name: v1alpha1, served: true, storage: false, schema: `+schema+`}, `+current), v1alpha1.UpdatePolicyReplace)
	b.must(step(plan.VerbCreate, crd, plan.Observation{}))
	eventually(t, "the type is served", func() bool {
		_, err := b.target.Types().Resolve(t.Context(), crdKind(kind, "v1alpha1"))
		_, current := b.target.Types().Resolve(t.Context(), crdKind(kind, "v1"))
		return err == nil && current == nil
	})
	object := func(version, name, spec string, verb plan.Verb) *plan.Desired {
		return b.desired(`{apiVersion: apply.example.com/`+version+`, kind: `+kind+`, metadata: {namespace: default, name: `+name+`}, spec: `+spec+`}`, writes[verb])
	}
	for _, verb := range applyVerbs {
		old := object("v1alpha1", string(verb), `{a: "1", b: "1", dropped: "1"}`, verb)
		b.must(step(plan.VerbCreate, old, plan.Observation{}))
		b.otherClient(old, `spec: {theirs: "1", b: "2"}`)
	}
	without := b.desired(definition(current), v1alpha1.UpdatePolicyReplace)
	without.Policies.AllowBreakingChanges = true
	b.must(step(plan.VerbReplace, without, b.observe(crd)))
	eventually(t, "the version is gone", func() bool {
		b.target.Types().Forget(crdKind(kind, "v1alpha1"))
		_, err := b.target.Types().Resolve(t.Context(), crdKind(kind, "v1alpha1"))
		return err != nil
	})
	for _, verb := range applyVerbs {
		d := object("v1", string(verb), `{a: "2", b: "1"}`, verb)
		var result plan.Result
		eventually(t, "the write is no conflict", func() bool {
			result = b.run(step(verb, d, b.observe(d)))
			return !execute.IsConflict(result.Err)
		})
		if result.Err != nil {
			t.Errorf("%s: %v", verb, result.Err)
			continue
		}
		live := b.live(d)
		check.SameNamed(t, string(verb), "map[a:2 b:1 theirs:1]", fmt.Sprint(live.Object["spec"]))
		for _, entry := range live.GetManagedFields() {
			check.SameNamed(t, string(verb)+": the entry of "+entry.Manager+" is of", "apply.example.com/v1", entry.APIVersion)
		}
		b.requests()
		b.must(step(verb, d, b.observe(d)))
		check.SameNamed(t, string(verb)+": the requests at rest were", "GET, PATCH", methods(b.requests()))
	}
}

func crdKind(kind, version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apply.example.com", Version: version, Kind: kind}
}
