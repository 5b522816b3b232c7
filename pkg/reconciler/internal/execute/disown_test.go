// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"net/http"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// takeover is the step that takes over an object of Helm's.
func takeover(b *bench, name string) plan.Step {
	b.t.Helper()
	text := `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + b.namespace() + `, name: ` + name
	b.create(text + `, annotations: {meta.helm.sh/release-name: web, theirs: "1"}}}`)
	d := b.desired(text+`}, data: {key: value}}`, v1alpha1.UpdatePolicySsaMerge)
	d.Policies.Adoption = v1alpha1.AdoptionPolicyAlways
	s := step(plan.VerbMerge, d, b.observe(d))
	s.Because = plan.BecauseAdopted
	return s
}

func TestATakeoverTakesTheMarksOfTheFormerOwnerOff(t *testing.T) {
	b := newBench(t)
	s := takeover(b, unique("map"))
	b.requests()
	taken := b.must(s)
	if sent := b.requests(); len(sent) != 2 {
		t.Errorf("the takeover took the requests %v", sent)
	}
	if len(taken.Marks.Others) > 0 || taken.Marks.OwnerID != ownerID || taken.ResourceVersion != b.observe(s.Desired).ResourceVersion {
		t.Errorf("got %+v", taken)
	}
	if b.live(s.Desired).GetAnnotations()["theirs"] != "1" {
		t.Error("an annotation that is no mark was taken off")
	}
}

func TestMarksAreLeftAloneByEveryOtherWrite(t *testing.T) {
	b := newBench(t)
	for _, change := range []func(s *plan.Step){
		func(s *plan.Step) { s.Because = plan.BecauseChanged },
		func(s *plan.Step) { s.Desired.Policies.Adoption = v1alpha1.AdoptionPolicyIfUnowned },
		func(s *plan.Step) { // the mark is our own manifest's
			annotations := s.Desired.Manifest.GetAnnotations()
			annotations["meta.helm.sh/release-name"] = "web"
			s.Desired.Manifest.SetAnnotations(annotations)
		},
	} {
		s := takeover(b, unique("map"))
		change(&s)
		b.must(s)
		if b.live(s.Desired).GetAnnotations()["meta.helm.sh/release-name"] != "web" {
			t.Errorf("%s under %s: the mark is gone", s.Because, s.Desired.Policies.Adoption)
		}
	}
}

func TestATakeoverThatIsInterruptedIsFinishedByTheWriteThatConfirmsIt(t *testing.T) {
	b := newBench(t)
	s := takeover(b, unique("map"))
	b.beforeEach(http.MethodPatch, func(n int) {
		if n == 2 {
			b.somebody(s.Desired, `metadata: {annotations: {theirs: "2"}}`)
		}
	})
	if result := b.run(s); !execute.IsConflict(result.Err) {
		t.Fatalf("the object changed in between: got %v", result.Err)
	}
	live := b.observe(s.Desired)
	if len(live.Marks.Others) != 1 || live.Marks.OwnerID != ownerID {
		t.Fatalf("got %+v", live.Marks)
	}
	again := step(plan.VerbMerge, s.Desired, live)
	again.Because = plan.BecauseUnconfirmed
	if finished := b.must(again); len(finished.Marks.Others) > 0 {
		t.Errorf("got %+v", finished.Marks)
	}
}
