// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

// estate is a namespace and a type, with something in each that is to be orphaned.
type estate struct {
	*bench
	namespace, definition *unstructured.Unstructured
	config, instance      *unstructured.Unstructured
}

func newEstate(t *testing.T, plural, kind, policy string) estate {
	b := newBench(t)
	e := estate{bench: b, namespace: namespaceOf(b.namespace + "-estate"), definition: definition(plural, kind)}
	e.config, e.instance = configIn("kept", b.namespace+"-estate"), b.in(instance(kind, "kept"))
	for _, object := range []*unstructured.Unstructured{e.config, e.instance} {
		object.SetAnnotations(map[string]string{engineName + "/delete-policy": policy})
	}
	e.installed(e.namespace, e.definition, e.config, e.instance, config("a", "1"))
	return e
}

// checkKept checks that the namespace and the type are orphaned, with what was
// orphaned in them, and that a note says so.
func (e estate) checkKept(outcome reconciler.Outcome) {
	e.t.Helper()
	for _, object := range []*unstructured.Unstructured{e.namespace, e.definition, e.config, e.instance} {
		live := object.DeepCopy()
		check.NoError(e.t, e.Get(e.t.Context(), client.ObjectKeyFromObject(object), live))
		_, labelled := live.GetLabels()[engineName+"/owner-id"]
		_, annotated := live.GetAnnotations()[engineName+"/owner"]
		if labelled || annotated || live.GetDeletionTimestamp() != nil {
			e.t.Errorf("%s %s: labels %v, annotations %v, deleted at %v", live.GetKind(), live.GetName(), live.GetLabels(), live.GetAnnotations(), live.GetDeletionTimestamp())
		}
	}
	for _, kept := range []*unstructured.Unstructured{e.namespace, e.definition} {
		want := "KeptForOrphan " + kept.GetKind() + " " + kept.GetName()
		if !slices.ContainsFunc(warnings(outcome), func(text string) bool { return strings.HasPrefix(text, want) }) {
			e.t.Errorf("no warning %q in %q", want, warnings(outcome))
		}
	}
	if outcome.Steps["orphan"] < 2 {
		e.t.Errorf("orphaned, as the outcome counts: %v", outcome.Steps)
	}
}

func TestAnOrphanedObjectKeepsItsNamespaceAndItsTypeWhenAllIsDeleted(t *testing.T) {
	e := newEstate(t, "heirlooms", "Heirloom", "orphan-on-delete")
	check.SameNamed(t, "blocked", "", e.blockers())
	outcome, err := e.delete()
	if err != nil || !outcome.Done() || len(e.inventory.Items) > 0 {
		t.Fatalf("delete: %v, waiting for %v, recorded %v", err, outcome.Waiting, e.inventory.Items)
	}
	e.checkKept(outcome)
	if e.get("a") != nil {
		t.Error("what is to be deleted is there")
	}
}

func TestOrphanedInstancesDoNotMakeInstancesOfOthersHarmless(t *testing.T) {
	for name, tc := range map[string]struct {
		plural, kind string
		gone         bool // what was orphaned is deleted before others make an instance
	}{
		"gone":        {"antiques", "Antique", true},
		"still there": {"relics", "Relic", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t, tc.plural, tc.kind, "orphan-on-apply")
			e.mustApply(e.namespace, e.definition, config("a", "1"))
			if tc.gone {
				check.NoError(t, e.Delete(t.Context(), e.instance.DeepCopy()))
			}
			theirs := e.in(instance(tc.kind, "theirs"))
			e.create(theirs)
			foreign := "1 foreign instance: " + tc.kind + " " + e.bench.namespace + "/theirs"
			if got, want := e.blockers(), "CustomResourceDefinition "+e.definition.GetName()+": "+foreign; got != want {
				t.Errorf("blocked by %q, want %q", got, want)
			}
			// The guard says the same if the deletion started before.
			outcome := check.Must(e.delete())(t)
			if !slices.ContainsFunc(outcome.Waiting, func(w report.Wait) bool {
				return w.Key.Name == e.definition.GetName() && w.Reason == report.WaitBlocked && strings.Contains(w.Message, foreign)
			}) {
				t.Errorf("waiting for %v", outcome.Waiting)
			}
			if !e.stands(theirs) {
				t.Error("the instance of others is gone")
			}
			check.NoError(t, e.Delete(t.Context(), theirs.DeepCopy()))
			check.SameNamed(t, "blocked without instances of others", "", e.blockers())
			check.NoError(t, check.ErrorOf(e.delete()))
			if e.stands(e.definition) == tc.gone {
				t.Errorf("the type is there: %t", !tc.gone)
			}
		})
	}
}
