// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
)

// digestOf builds one object and returns its digest.
func digestOf(t *testing.T, object string, change func(*Input)) string {
	t.Helper()
	in := input(parse(t, object)...)
	if change != nil {
		change(&in)
	}
	return build(t, in)[0].Digest
}

func TestDigestsAreAboutWhatTheUserWants(t *testing.T) {
	const base = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: one}, annotations: {x: one}}, data: {k: v}}`
	want := digestOf(t, base, nil)
	same := map[string]string{
		"our label and annotation of another owner": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: one, shop.example.com/owner-id: z}, annotations: {x: one, shop.example.com/owner: z}}, data: {k: v}}`,
		"what the server keeps":                     `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: "5", resourceVersion: "6", labels: {x: one}, annotations: {x: one}}, data: {k: v}, status: {}}`,
		"the namespace that it gets":                `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {x: one}, annotations: {x: one}}, data: {k: v}}`,
		"another order of the fields":               `{data: {k: v}, metadata: {annotations: {x: one}, labels: {x: one}, name: a}, kind: ConfigMap, apiVersion: v1}`,
	}
	for name, object := range same {
		check.SameNamed(t, name+" changes the digest", want, digestOf(t, object, nil))
	}
	different := map[string]string{
		"a value":     `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: one}, annotations: {x: one}}, data: {k: w}}`,
		"a label":     `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: z}, annotations: {x: one}}, data: {k: v}}`,
		"a rule":      `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: one}, annotations: {x: one, shop.example.com/apply-order: "0"}}, data: {k: v}}`,
		"a namespace": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: z, labels: {x: one}, annotations: {x: one}}, data: {k: v}}`,
	}
	for name, object := range different {
		if got := digestOf(t, object, nil); got == want {
			t.Errorf("%s does not change the digest", name)
		}
	}
	for name, change := range map[string]func(*Input){
		"the owner":     func(in *Input) { in.Owner.ID = "other" },
		"the component": func(in *Input) { in.ComponentDigest = "other" },
	} {
		check.SameNamed(t, name+" changes the digest", want, digestOf(t, base, change))
	}
	if got := digestOf(t, base, func(in *Input) { in.Hasher = digest.Hasher{Key: []byte("k")} }); got == want {
		t.Error("the key does not change the digest")
	}
}

// A manifest with rules that the aggregation controller owns is the same after an upgrade of the operator.
func TestRulesOfAnAggregatedRoleAreNotInTheManifestButInItsDigest(t *testing.T) {
	role := func(more string) string {
		return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, ` + more + `}`
	}
	aggregated, plain := role(`aggregationRule: {}, rules: []`), role(`rules: []`)
	if _, there := build(t, input(parse(t, aggregated)...))[0].Manifest.Object["rules"]; there {
		t.Error("the rules are still there")
	}
	if _, there := build(t, input(parse(t, plain)...))[0].Manifest.Object["rules"]; !there {
		t.Error("the rules of a role without an aggregationRule are gone")
	}
	if digestOf(t, aggregated, nil) == digestOf(t, role(`aggregationRule: {}`), nil) {
		t.Error("the rules are not in the digest")
	}
}

func TestDigestsOfObjectsThatFollowTheComponent(t *testing.T) {
	object := cm("a", "reconcile-policy=on-object-or-component-change")
	digests := map[string]bool{}
	for _, component := range []string{"1", "2", ""} {
		digests[digestOf(t, object, func(in *Input) { in.ComponentDigest = component })] = true
	}
	check.SameNamed(t, "digests for 3 states of the component", 3, len(digests))
}

func TestIgnoreRulesThatChangeAreAReasonToWriteButNotToRunAgain(t *testing.T) {
	ignoring := func(in *Input) {
		in.IgnoreRules = []policy.IgnoreRule{{Type: v1alpha1.TypeInfo{Kind: "ConfigMap"}, Selector: labels.Everything(), Fields: []string{"/data/k"}}}
	}
	for object, changes := range map[string]bool{
		cm("a"): true, cm("a", "reconcile-policy=on-object-or-component-change"): true,
		cm("a", "reconcile-policy=once"): false, cm("a", "reconcile-policy=once-per-manifest"): false,
		`{apiVersion: v1, kind: Secret, metadata: {name: a}}`: false,
	} {
		if before, after := digestOf(t, object, nil), digestOf(t, object, ignoring); (before != after) != changes {
			t.Errorf("%s: digest %s, with a rule %s", object, before, after)
		}
	}
}

func TestTheRevisionOfAnObjectIsApartFromItsManifest(t *testing.T) {
	for _, others := range []string{"x: one", ""} {
		annotated := func(revision string) string {
			return digestOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {shop.example.com/revision: "`+revision+`",`+others+`}}}`, nil)
		}
		plain := digestOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {`+others+`}}}`, nil)
		one, _ := strings.CutPrefix(annotated("1"), plain)
		two, _ := strings.CutPrefix(annotated("2"), plain)
		if one == annotated("1") || two == annotated("2") || one == two {
			t.Errorf("beside %q: the digest %s becomes %s in revision 1 and %s in revision 2", others, plain, annotated("1"), annotated("2"))
		}
	}
	object := build(t, input(parse(t, cm("a", "revision=7"))...))[0]
	check.SameNamed(t, "the manifest says the revision", "7", object.Manifest.GetAnnotations()["shop.example.com/revision"])
}

func TestStringDataAndDataGiveTheSame(t *testing.T) {
	plain := digestOf(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`, nil)
	check.SameNamed(t, "the digests differ", digestOf(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: dg==}}`, nil), plain)
	check.SameNamed(t, "plain values do not win", digestOf(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: eA==}, stringData: {k: v}}`, nil), plain)
	object := build(t, input(parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: null}`)...))[0]
	if _, there := object.Manifest.Object["stringData"]; there {
		t.Error("an empty stringData is left")
	}
}

func TestManifestDigest(t *testing.T) {
	objects := build(t, input(parse(t, documents(cm("a"), cm("b"), cm("c")))...))
	want := ManifestDigest(objects)
	reversed := slices.Clone(objects)
	slices.Reverse(reversed)
	check.SameNamed(t, "the order counts", want, ManifestDigest(reversed))
	for name, other := range map[string][]plan.Desired{
		"a missing object": objects[1:],
		"another object":   build(t, input(parse(t, documents(cm("a"), cm("b"), cm("d")))...)),
		"a changed object": build(t, input(parse(t, documents(cm("a"), cm("b"), cm("c", "apply-order=1")))...)),
		"nothing":          nil,
	} {
		if ManifestDigest(other) == want {
			t.Errorf("%s does not count", name)
		}
	}
}
