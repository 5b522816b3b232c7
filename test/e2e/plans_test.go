// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/slice"
)

// TestPlansAreWhatHappens plans each step of each scenario, takes the step, and compares the writes to
// dependents in the audit log with the plan: the same writes in the same stages. The components of
// a scenario change one after the other.
func TestPlansAreWhatHappens(t *testing.T) {
	t.Parallel()
	cases := slice.FromEnvironment(t)
	for i, s := range slices.Concat(scenarios, otherClientScenarios()) {
		if !cases.Has(i) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.playAsPlanned(t)
		})
	}
}

// An upgrade of the operator is planned with the generator of its next version.
func TestThePlanOfAnUpgradeOfTheOperatorIsWhatHappens(t *testing.T) {
	t.Parallel()
	p := newPlanning(t, newFixture(t), bundleManifests)
	s := &scenario{}
	p.step(t, p.creation(s.bundle(p.fixture, "main", lifeOne)))
	next := manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, _ types.Unstructurable) ([]client.Object, error) {
		return bundleManifests.Generate(ctx, namespace, name, values(p.values(lifeTwo)))
	})
	p.step(t, planned{
		name: "upgrade", request: component.PlanRequest[*Bundle]{Key: client.ObjectKeyFromObject(p.named("main")), Generator: next},
		take: func(t *testing.T) {
			p.operator.stop(t)
			p.operator = p.startWith(t, next, nil)
		},
		finished: func(ctx context.Context) error {
			return p.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "last"}, &corev1.ConfigMap{})
		},
	})
}

// unplanned returns why the last step of a scenario is not compared with its plan; empty if it is.
func (s *scenario) unplanned() string {
	switch {
	case s.act != nil:
		return "the namespace controller deletes objects at the same time, in any order"
	case s.ends["main"] == vocabulary.ReasonRolledBack:
		return "a plan assumes that nothing fails"
	case s.ends["main"] == vocabulary.ReasonApprovalRequired:
		return "a plan shows what is done after its approval"
	}
	return ""
}

// playAsPlanned takes the steps of the scenario, and expects of each of them what its plan says.
func (s *scenario) playAsPlanned(t *testing.T) {
	f := newFixture(t)
	if s.remote {
		f.openGateway(t)
	}
	p := newPlanning(t, f, s.generator(t, f))
	f.create(t, s.others)
	f.create(t, s.existing)
	for _, name := range s.names() {
		if content, ok := s.installed[name]; ok {
			p.step(t, p.creation(s.bundle(f, name, content)))
		}
	}
	for _, c := range s.changes {
		if c.reason != "" { // it fails, or waits
			c.do(t, f, "main")
			c.await(t, f)
			continue
		}
		p.step(t, p.edit(t, "main", c))
	}
	f.create(t, s.visitors)
	if reason := s.unplanned(); reason != "" {
		t.Logf("the last step is not compared: %s", reason)
		return
	}
	if s.meanwhile != nil {
		s.meanwhile(t, f)
		for _, name := range s.names() {
			p.awaitRest(t, name)
		}
	}
	for _, name := range s.names() {
		next := s.lastStep(t, p, name)
		next.finished = func(ctx context.Context) error { return s.finishedFor(ctx, f, name) }
		p.step(t, next)
	}
	if s.after != nil {
		s.after(t, f)
	}
}

// lastStep is what the scenario asks for at its end.
func (s *scenario) lastStep(t *testing.T, p *planning, name string) planned {
	t.Helper()
	content, desired := s.desired[name]
	_, installed := s.installed[name]
	switch {
	case s.last != nil:
		return p.edit(t, name, *s.last)
	case !desired:
		return p.deletion(name)
	case !installed:
		return p.creation(s.bundle(p.fixture, name, content))
	default:
		return p.edit(t, name, change{content: content})
	}
}

// planning compares steps with their plans.
type planning struct {
	*fixture
	operator *operator
}

func newPlanning(t *testing.T, f *fixture, generator manifests.Generator) *planning {
	t.Helper()
	return &planning{fixture: f, operator: f.startWith(t, generator, nil)}
}

// planned is a step that changes a component.
type planned struct {
	name    string // for messages
	request component.PlanRequest[*Bundle]
	take    func(t *testing.T)
	// finished returns an error as long as the component has not come to the end of the step.
	finished func(ctx context.Context) error
}

// creation creates a component.
func (p *planning) creation(bundle *Bundle) planned {
	return planned{
		name: "creation of " + bundle.Name, request: component.PlanRequest[*Bundle]{Key: client.ObjectKeyFromObject(bundle), Edited: bundle},
		take: func(t *testing.T) {
			t.Helper()
			if err := p.Create(t.Context(), bundle.DeepCopyObject().(*Bundle)); err != nil {
				t.Fatal(err)
			}
		},
		finished: func(ctx context.Context) error {
			return (&scenario{desired: map[string][]string{bundle.Name: nil}}).finished(ctx, p.fixture)
		},
	}
}

// edit changes a component.
func (p *planning) edit(t *testing.T, name string, c change) planned {
	t.Helper()
	bundle := read(t, func(ctx context.Context) (*Bundle, error) {
		bundle := p.named(name)
		if err := p.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return nil, err
		}
		return bundle, c.to(p.fixture, bundle)
	})
	return planned{
		name: "edit of " + name, request: component.PlanRequest[*Bundle]{Key: client.ObjectKeyFromObject(bundle), Edited: bundle},
		take: func(t *testing.T) {
			t.Helper()
			c.do(t, p.fixture, name)
		},
		finished: func(ctx context.Context) error { return c.applied(ctx, p.fixture) },
	}
}

// deletion deletes a component.
func (p *planning) deletion(name string) planned {
	return planned{
		name: "deletion of " + name, request: component.PlanRequest[*Bundle]{Key: client.ObjectKeyFromObject(p.named(name)), Delete: true},
		take: func(t *testing.T) {
			t.Helper()
			if err := p.Delete(t.Context(), p.named(name)); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// step plans a step, takes it, and compares.
func (p *planning) step(t *testing.T, s planned) {
	t.Helper()
	plan := p.plan(t, s)
	from := p.positions(t)
	s.take(t)
	eventually(t, "the end of the "+s.name, s.finished)
	p.awaitRest(t, s.request.Key.Name)
	var done []string
	for _, e := range p.writes(t, from) {
		if e.Code < 300 && isOfDependent(e) {
			done = append(done, writeOf(e))
		}
	}
	want := stagesOf(plan)
	if diff := cmp.Diff(want, inStages(done, want)); diff != "" {
		t.Errorf("the plan of the %s is wrong (-planned +done):\n%s\n%s", s.name, diff, plan)
	}
}

// plan returns the plan of a step, and expects that nothing is written for it.
func (p *planning) plan(t *testing.T, s planned) component.Plan {
	t.Helper()
	from := p.positions(t)
	plan, err := p.operator.reconciler.Plan(t.Context(), s.request)
	if err != nil {
		t.Fatalf("plan the %s: %v", s.name, err)
	}
	for _, e := range p.writes(t, from) {
		if e.Resource != "widgets" { // the operator may not be done with the status
			t.Errorf("during the plan of the %s: %s", s.name, writeOf(e))
		}
	}
	return plan
}

// awaitRest waits until nothing is left to do for a component, as its plan says.
func (p *planning) awaitRest(t *testing.T, name string) {
	t.Helper()
	eventually(t, "component "+name+" to be at rest", func(ctx context.Context) error {
		plan, err := p.operator.reconciler.Plan(ctx, component.PlanRequest[*Bundle]{Key: client.ObjectKeyFromObject(p.named(name))})
		if err == nil && len(stagesOf(plan)) > 0 {
			err = fmt.Errorf("the plan is\n%s", plan)
		}
		return client.IgnoreNotFound(err)
	})
}

// positions are the ends of the audit logs of the clusters.
func (p *planning) positions(t *testing.T) map[*env.Environment]int64 {
	t.Helper()
	positions := map[*env.Environment]int64{}
	for _, e := range []*env.Environment{p.env, p.targetEnv} {
		position, err := e.AuditPosition(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		positions[e] = position
	}
	return positions
}

// writes returns the writes of the operator since then, without dry runs, events and its digest key.
func (p *planning) writes(t *testing.T, from map[*env.Environment]int64) (all []env.AuditEvent) {
	t.Helper()
	for e, position := range from {
		events, err := e.AuditEventsSince(t.Context(), position, p.user())
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			isWrite := slices.Contains([]string{"create", "update", "patch", "delete"}, event.Verb) && event.Group != "authorization.k8s.io"
			dryRun := strings.Contains(event.URI, "dryRun=All") || strings.Contains(string(event.Sent), `"dryRun":["All"]`)
			other := event.Resource == "events" || event.Resource == "secrets" && strings.Contains(writtenIn(event), "digest-key")
			if event.User == p.user() && isWrite && !dryRun && !other {
				all = append(all, event)
			}
		}
	}
	return all
}

// isOfDependent reports whether a write is about a dependent, and not about the component and what is
// recorded of it.
func isOfDependent(e env.AuditEvent) bool {
	isRecord := e.Resource == "secrets" && (strings.Contains(writtenIn(e), "-inventory-") || strings.Contains(writtenIn(e), "-revisions-"))
	return !isRecord && e.Resource != "widgets"
}

// writtenIn returns the name of the object of a request.
func writtenIn(e env.AuditEvent) string {
	if e.Name != "" {
		return e.Name
	}
	object := &metav1.PartialObjectMetadata{}
	_ = json.Unmarshal(e.Answered, object) // without a body, it has no name
	return object.Name
}

// writeOf returns a write as text. A patch that creates an object is a creation.
func writeOf(e env.AuditEvent) string {
	namespace, verb := e.Namespace, e.Verb
	if e.Code == http.StatusCreated {
		verb = "create"
	}
	if e.Resource == "namespaces" {
		namespace = ""
	}
	return writeAs(verb, e.Group, e.Resource, namespace, writtenIn(e))
}

func writeAs(verb, group, resource, namespace, name string) string {
	return fmt.Sprintf("%s %s %s/%s", verb, schema.GroupResource{Group: group, Resource: resource}, namespace, name)
}

// requestVerbs are the verbs of the requests of changes.
var requestVerbs = map[string]string{
	"create": "create", "replace": "update", "merge": "patch", "override": "patch", "mark": "patch", "delete": "delete", "orphan": "patch",
}

// stagesOf returns the writes of a plan by their stages, in order of their texts. Those of shared types come first, as its notes say.
func stagesOf(plan component.Plan) (stages [][]string) {
	for _, note := range plan.Notes {
		for start, verb := range map[string]string{"is created by the first component": "create", "is changed (": "update"} {
			if strings.HasPrefix(note.Message, start) {
				stages = append(stages, []string{writeAs(verb, note.Key.Group, "customresourcedefinitions", "", note.Key.Name)})
			}
		}
	}
	batch, stage := 0, 0
	for _, c := range plan.Changes {
		if c.Class == report.ChangeRefused || c.Class == report.ChangeBlocked {
			continue
		}
		if c.Batch != batch || c.Stage != stage {
			stages = append(stages, nil)
			batch, stage = c.Batch, c.Stage
		}
		resource, _ := apimeta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(c.APIVersion, c.Key.Kind))
		stages[len(stages)-1] = append(stages[len(stages)-1], writeAs(requestVerbs[c.Verb], c.Key.Group, resource.Resource, c.Key.Namespace, c.Key.Name))
	}
	for _, writes := range stages {
		slices.Sort(writes)
	}
	return stages
}

// inStages divides writes as the stages of a plan are divided. What is left is a stage of its own.
func inStages(done []string, planned [][]string) (stages [][]string) {
	for _, writes := range planned {
		n := min(len(writes), len(done))
		stages, done = append(stages, slices.Sorted(slices.Values(done[:n]))), done[n:]
	}
	if len(done) > 0 {
		stages = append(stages, done)
	}
	return stages
}
