// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/check"
)

const prefix = "shop.example.com"

// annotate puts the prefix before the names, given in pairs with values.
func annotate(pairs ...string) map[string]string {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations[prefix+"/"+pairs[i]] = pairs[i+1]
	}
	return annotations
}

// builtin is the set of defaults, with one change.
func builtin(change func(*Set)) Set {
	set := Set{
		Adoption:  v1alpha1.AdoptionPolicyIfUnowned,
		Reconcile: v1alpha1.ReconcilePolicyOnObjectChange,
		Update:    v1alpha1.UpdatePolicyReplace,
		Delete:    v1alpha1.DeletePolicyDelete,
		Drift:     v1alpha1.DriftPolicyRepair,
	}
	if change != nil {
		change(&set)
	}
	return set
}

func TestParseReadsEveryAnnotation(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		want        Set
	}{
		{"no annotations give the defaults", nil, builtin(nil)},
		{"annotations of others say nothing", map[string]string{"other/update-policy": "x", "update-policy": "x", prefix: "x", prefix + "x/update-policy": "y"}, builtin(nil)},
		{"adoption policy", annotate("adoption-policy", "never"), builtin(func(s *Set) { s.Adoption = v1alpha1.AdoptionPolicyNever })},
		{"adoption policy always", annotate("adoption-policy", "always"), builtin(func(s *Set) { s.Adoption = v1alpha1.AdoptionPolicyAlways })},
		{"adoption policy ignore", annotate("adoption-policy", "ignore"), builtin(func(s *Set) { s.Adoption = v1alpha1.AdoptionPolicyIgnore })},
		{"reconcile policy", annotate("reconcile-policy", "on-object-or-component-change"), builtin(func(s *Set) { s.Reconcile = v1alpha1.ReconcilePolicyOnObjectOrComponentChange })},
		{"revision", annotate("revision", " 7"), builtin(func(s *Set) { s.Revision = "7" })},
		{"reconcile policy once", annotate("reconcile-policy", "once"), builtin(func(s *Set) { s.Reconcile = v1alpha1.ReconcilePolicyOnce })},
		{"update policy", annotate("update-policy", "ssa-override"), builtin(func(s *Set) { s.Update = v1alpha1.UpdatePolicySsaOverride })},
		{"update policy in camel case", annotate("update-policy", "SsaMerge"), builtin(func(s *Set) { s.Update = v1alpha1.UpdatePolicySsaMerge })},
		{"update policy that starts small", annotate("update-policy", "ssaMerge"), builtin(func(s *Set) { s.Update = v1alpha1.UpdatePolicySsaMerge })},
		{"a value from a YAML block, with a line end", annotate("update-policy", "recreate\n"), builtin(func(s *Set) { s.Update = v1alpha1.UpdatePolicyRecreate })},
		{"delete policy", annotate("delete-policy", "orphan-on-apply"), builtin(func(s *Set) { s.Delete = v1alpha1.DeletePolicyOrphanOnApply })},
		{"delete policy on delete", annotate("delete-policy", "OrphanOnDelete"), builtin(func(s *Set) { s.Delete = v1alpha1.DeletePolicyOrphanOnDelete })},
		{"breaking changes", annotate("allow-breaking-changes", "true"), builtin(func(s *Set) { s.AllowBreakingChanges = true })},
		{"drift policy", annotate("drift-policy", "report"), builtin(func(s *Set) { s.Drift = v1alpha1.DriftPolicyReport })},
		{"drift policy in camel case", annotate("drift-policy", "Ignore"), builtin(func(s *Set) { s.Drift = v1alpha1.DriftPolicyIgnore })},
		{"the least and the greatest order", annotate("apply-order", "-32768", "delete-order", "32767"), builtin(func(s *Set) { s.Order = Order{Apply: -32768, Delete: 32767} })},
		{"purge order", annotate("apply-order", "-5", "purge-order", "-5"), builtin(func(s *Set) { s.Order = Order{Apply: -5, Purge: new(int16(-5))} })},
		{"a purge order below the apply order", annotate("apply-order", "3", "purge-order", "2"), builtin(func(s *Set) { s.Order = Order{Apply: 3, Purge: new(int16(3))} })},
		{"reapply interval", annotate("reapply-interval", "1h30m"), builtin(func(s *Set) { s.Reapply = 90 * time.Minute })},
		{"the shortest reapply interval", annotate("reapply-interval", "1m"), builtin(func(s *Set) { s.Reapply = time.Minute })},
		{"status hints", annotate("status-hint", "has-observed-generation, has-ready-condition,conditions=Synced;Healthy;Synced"), builtin(func(s *Set) {
			s.Hints = StatusHints{ObservedGeneration: true, ReadyCondition: true, Conditions: []string{"Synced", "Healthy"}}
		})},
		{"status hints in camel case", annotate("status-hint", "HasReadyCondition\nConditions=A"), builtin(func(s *Set) {
			s.Hints = StatusHints{ReadyCondition: true, Conditions: []string{"A"}}
		})},
		{"ready when", annotate("ready-when", " self.status.ready\n"), builtin(func(s *Set) { s.ReadyWhen = "self.status.ready" })},
		{"outputs", annotate("output.port", " self.spec.port\n", "secret-output.login", "self.data.login"), builtin(func(s *Set) {
			s.Outputs = []Output{{Name: "port", Expression: "self.spec.port"}, {Name: "login", Expression: "self.data.login", Secret: true}}
		})},
		{"ignored fields", annotate("ignore-fields", "/spec/replicas,\n/metadata/annotations/a~1b, /spec/replicas"), builtin(func(s *Set) {
			s.IgnoreFields = []string{"/metadata/annotations/a~1b", "/spec/replicas"}
		})},
		{"dependencies", annotate("depends-on", "apps/Deployment/shop/api, Secret/db\nbatch/Job/migrate"), builtin(func(s *Set) {
			s.DependsOn = []Reference{{"apps", "Deployment", "shop", "api"}, {"", "Secret", "", "db"}, {"batch", "Job", "", "migrate"}}
		})},
		{"run on", annotate("run-on", "pre-delete"), builtin(func(s *Set) { s.RunOn = RunOnPreDelete })},
		{"run on in camel case", annotate("run-on", "PostDelete"), builtin(func(s *Set) { s.RunOn = RunOnPostDelete })},
		{"ownership keys and annotations of components are no rules", annotate("owner", "x", "owner-id", "x", "management-policy", "x", "operator-namespace", "x", "suspend", "x", "suspend-reason", "x", "reconcile-at", "x",
			"rollback-to", "x", "require-approval", "x", "approve", "x", "allow-empty", "x", "abandon", "x", "skip-delete-hooks", "x"), builtin(nil)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check.Must(Parse(prefix, tt.annotations, Set{}))(t)
			check.Equal(t, tt.want, got)
		})
	}
}

func TestParseExplainsEveryMistake(t *testing.T) {
	tests := []struct {
		name, annotation, value, want string
	}{
		{"wrong adoption policy", "adoption-policy", "sometimes", `"sometimes" is not one of if-unowned, never, always`},
		{"empty policy", "adoption-policy", "", `"" is not one of`},
		{"wrong reconcile policy", "reconcile-policy", "twice", `"twice" is not one of on-object-change, on-object-or-component-change, once`},
		{"wrong update policy", "update-policy", "usual", `"usual" is not one of replace, ssa-merge, ssa-override, recreate`},
		{"wrong delete policy", "delete-policy", "keep", `"keep" is not one of delete, orphan, orphan-on-apply, orphan-on-delete`},
		{"a flag that is none", "allow-breaking-changes", "maybe", `"maybe" is neither true nor false`},
		{"wrong drift policy", "drift-policy", "warn", `"warn" is not one of repair, report, ignore`},
		{"wrong run-on", "run-on", "install", `"install" is not one of pre-delete, post-delete`},
		{"order is no number", "apply-order", "first", `"first" is not an integer from -32768 to 32767`},
		{"order is a fraction", "apply-order", "1.5", "is not an integer"},
		{"order too great", "delete-order", "32768", "is not an integer from -32768 to 32767"},
		{"order too small", "purge-order", "-32769", "is not an integer from -32768 to 32767"},
		{"order empty", "purge-order", "", "is not an integer"},
		{"interval without unit", "reapply-interval", "60", "is not a duration of at least 1m"},
		{"interval too short", "reapply-interval", "59s", "is not a duration of at least 1m"},
		{"interval negative", "reapply-interval", "-1h", "is not a duration of at least 1m"},
		{"interval beyond what a duration holds", "reapply-interval", "9999999h", "is not a duration"},
		{"unknown hint", "status-hint", "has-phase", `"has-phase" is not one of has-observed-generation, has-ready-condition, conditions=`},
		{"hint with a value it does not take", "status-hint", "has-ready-condition=true", "is not one of"},
		{"conditions without value", "status-hint", "conditions", "is not one of"},
		{"empty condition", "status-hint", "conditions=A;;B", "not a list of condition types"},
		{"empty hint", "status-hint", " , ", "names no hint"},
		{"empty expression", "ready-when", "  ", "the expression is empty"},
		{"empty expression of an output", "output.a", " ", "the expression is empty"},
		{"output without a name", "output.", "self.a", "the name of an output has 1 to 40 letters"},
		{"output without a dot", "output", "self.a", "is not known"},
		{"long name of an output", "output." + strings.Repeat("a", 41), "self.a", "the name of an output has 1 to 40 letters"},
		{"field path with dots", "ignore-fields", "spec.replicas", `"spec.replicas" is not a JSON pointer, such as /spec/replicas`},
		{"whole document", "ignore-fields", "/", "is not a JSON pointer"},
		{"empty segment", "ignore-fields", "/spec//x", "is not a JSON pointer"},
		{"bad escape", "ignore-fields", "/metadata/a~2b", "after ~ comes 0 (for ~) or 1 (for /)"},
		{"bad escape at the end", "ignore-fields", "/metadata/a~", "after ~ comes"},
		{"name", "ignore-fields", "/metadata/name", "identifies the object"},
		{"no field", "ignore-fields", "", "names no field"},
		{"reference without kind", "depends-on", "api", `"api" is not a reference, such as apps/Deployment/shop/api`},
		{"reference with too many parts", "depends-on", "a/b/c/d/e", "is not a reference"},
		{"reference without name", "depends-on", "apps/Deployment/", "is not a reference"},
		{"reference with blanks", "depends-on", "Secret/a b", "is not a reference"},
		{"no reference", "depends-on", ",", "names no object"},
		{"misspelled annotation", "aply-order", "1", "is not known; known are adoption-policy, allow-breaking-changes, apply-order,"},
		{"nested name", "apply-order/x", "1", "is not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(prefix, annotate(tt.annotation, tt.value), Set{})
			check.Fails(t, err, "annotation "+prefix+"/"+tt.annotation+": ", tt.want)
		})
	}
}

func TestParseListsAllMistakesInOrder(t *testing.T) {
	_, err := Parse(prefix, annotate("update-policy", "x", "apply-order", "x", "bogus", "x", "adoption-policy", "x"), Set{})
	if err == nil {
		t.Fatal("accepted")
	}
	var got []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		got = append(got, strings.TrimSuffix(strings.Fields(line)[1], ":"))
	}
	want := []string{prefix + "/adoption-policy", prefix + "/apply-order", prefix + "/bogus", prefix + "/update-policy"}
	check.Equal(t, want, got)
}

func TestParseShortensLongValues(t *testing.T) {
	_, err := Parse(prefix, annotate("update-policy", strings.Repeat("ä", 10000)), Set{})
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("got a message of %d bytes", len(err.Error()))
	}
}

func TestTheDeprecatedValueDefaultIsNone(t *testing.T) {
	defaults := Set{Adoption: v1alpha1.AdoptionPolicyAlways, Update: v1alpha1.UpdatePolicySsaMerge, Delete: v1alpha1.DeletePolicyOrphan}
	want := check.Must(Parse(prefix, nil, defaults))(t)
	got, err := Parse(prefix, annotate("adoption-policy", "default", "update-policy", "Default", "delete-policy", "default"), defaults)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
