// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests"
	corbeltypes "github.com/corbel-run/corbel/pkg/types"
)

// scenario is a scenario of components: what is there, what is installed, what is
// desired then, and how it must end, whatever happens to the operator on the way.
// In manifests $NS is the namespace of the components and $ID a text that is part
// of no other scenario.
type scenario struct {
	name string

	// others are objects that exist before everything else and must not be changed.
	others []string
	// existing are objects that exist before everything else and may be adopted.
	existing []string
	// installed are the manifests of the components that are ready before the
	// operator is in danger, by the name of the component.
	installed map[string][]string
	// changes are done after the installation, one after the other, before the operator is in danger.
	changes []change
	// visitors are objects that come after the installation and must not be changed.
	visitors []string
	// desired are the manifests of the components then; an installed one that is
	// not among them is deleted.
	desired map[string][]string
	// settings change the spec of a component.
	settings func(name string, spec *BundleSpec)
	// last is the change that is asked for instead of what is desired.
	last *change
	// act is done instead of bringing about what is desired.
	act func(t testing.TB, f *fixture)

	// chart makes the manifests templates of a chart.
	chart bool
	// shares makes the definition of the type Gear one that all components share.
	shares bool
	// rollsOut makes what happens an upgrade of the operator, which is rolled out to one component at a time.
	rollsOut bool
	// remote puts the dependents into another cluster.
	remote bool
	// meanwhile is done right before what is desired is asked for.
	meanwhile func(t testing.TB, f *fixture)

	// ends are reasons of condition Ready at the end, if it is not Ready.
	ends map[string]string
	// gone are the components that do not exist at the end, although they are desired.
	gone []string
	// history is that of component main at the end, the latest revision first; empty means any.
	history []string
	// applied are the manifests of component main at the end, if not those that are desired.
	applied []string
	// jobs are those that were created on the way, each once; nil means any.
	jobs []string
	// owned are the objects that have the label of their component in the end.
	owned []string
	// refused are the objects that go to another owner. While they are desired, they are
	// on record, and may still have our label next to that of the other.
	refused []string
	// recreated are the objects that may become others on the way.
	recreated []string
	// after looks at the end itself.
	after func(t testing.TB, f *fixture)
}

// names returns the components of the scenario.
func (s *scenario) names() []string {
	var all []string
	for _, set := range []map[string][]string{s.installed, s.desired} {
		for name := range set {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// survives reports whether a component exists at the end.
func (s *scenario) survives(name string) bool {
	if s.act != nil || s.last != nil {
		return !slices.Contains(s.gone, name)
	}
	_, desired := s.desired[name]
	return desired || s.ends[name] != ""
}

// prepare brings about the start: what exists, and what is installed.
func (s *scenario) prepare(t testing.TB, f *fixture) {
	t.Helper()
	f.create(t, s.others)
	f.create(t, s.existing)
	for _, name := range s.names() {
		if content, ok := s.installed[name]; ok {
			f.component(t, s, name, content)
		}
	}
	for _, name := range s.names() {
		if _, ok := s.installed[name]; ok {
			f.ready(t, f.named(name))
		}
	}
	for _, c := range s.changes {
		c.do(t, f, "main")
		c.await(t, f)
	}
	f.create(t, s.visitors)
}

// proceed asks for what is desired.
func (s *scenario) proceed(t testing.TB, f *fixture) {
	t.Helper()
	if s.meanwhile != nil {
		s.meanwhile(t, f)
	}
	switch {
	case s.act != nil:
		s.act(t, f)
		return
	case s.last != nil:
		s.last.do(t, f, "main")
		return
	}
	for _, name := range s.names() {
		content, desired := s.desired[name]
		_, installed := s.installed[name]
		switch {
		case !desired:
			if err := f.Delete(t.Context(), f.named(name)); err != nil {
				t.Fatal(err)
			}
		case !installed:
			f.component(t, s, name, content)
		default:
			f.update(t, f.named(name), f.values(content))
		}
	}
}

// withoutRefused leaves out the objects of other owners.
func (s *scenario) withoutRefused(f *fixture, objects map[string]types.UID) map[string]types.UID {
	for _, name := range s.refused {
		delete(objects, f.fill(name))
	}
	return objects
}

// finished returns an error as long as the scenario has not ended.
func (s *scenario) finished(ctx context.Context, f *fixture) error {
	for _, name := range s.names() {
		if err := s.finishedFor(ctx, f, name); err != nil {
			return err
		}
	}
	return nil
}

// finishedFor returns an error as long as the scenario has not ended for a component.
func (s *scenario) finishedFor(ctx context.Context, f *fixture, name string) error {
	bundle := f.named(name)
	err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle)
	if apierrors.IsNotFound(err) && !s.survives(name) {
		return nil
	}
	if err != nil {
		return err
	}
	state, reason, message := bundle.Status.GetState()
	want := s.ends[name]
	if want == "" {
		want = "Ready"
	}
	if !s.survives(name) || reason != want || bundle.Status.ObservedGeneration != bundle.Generation {
		return fmt.Errorf("component %s: generation %d, observed %d: %s (%s): %s",
			name, bundle.Generation, bundle.Status.ObservedGeneration, state, reason, message)
	}
	if got := historyOf(bundle); s.history != nil && !slices.Equal(got, s.history) {
		return fmt.Errorf("component %s: the history is %q, want %q: %s", name, got, s.history, message)
	}
	return nil
}

// texts returns all manifests of the scenario.
func (s *scenario) texts() []string {
	all := slices.Concat(s.others, s.existing, s.visitors, s.applied)
	for _, c := range s.changes {
		all = append(all, c.content...)
	}
	for _, set := range []map[string][]string{s.installed, s.desired} {
		for _, content := range set {
			all = append(all, content...)
		}
	}
	return all
}

// fill puts the names of the fixture into a text.
func (f *fixture) fill(text string) string {
	return strings.NewReplacer("$NS", f.namespace, "$ID", letters(f.namespace)).Replace(text)
}

// values are those of a Bundle with the manifests.
func (f *fixture) values(content []string) map[string]string {
	return map[string]string{"manifests": f.fill(strings.Join(content, "---\n"))}
}

func (f *fixture) named(name string) *Bundle {
	bundle := &Bundle{}
	bundle.Namespace, bundle.Name = f.namespace, name
	return bundle
}

// bundle returns a component of the scenario.
func (s *scenario) bundle(f *fixture, name string, content []string) *Bundle {
	bundle := f.named(name)
	bundle.Spec.Values = f.values(content)
	if s.settings != nil {
		s.settings(name, &bundle.Spec)
	}
	return bundle
}

// component creates one component of a scenario.
func (f *fixture) component(t testing.TB, s *scenario, name string, content []string) {
	t.Helper()
	if err := f.Create(t.Context(), s.bundle(f, name, content)); err != nil {
		t.Fatal(err)
	}
}

// create creates objects as another client; a type that is not served yet is waited for.
func (f *fixture) create(t testing.TB, texts []string) {
	t.Helper()
	for _, object := range f.objects(t, texts) {
		eventually(t, "the creation of "+object.GetName(), func(ctx context.Context) error {
			return f.target.Create(ctx, object.DeepCopy())
		})
	}
}

// objects reads manifests.
func (f *fixture) objects(t testing.TB, texts []string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := document.Decode("story", []byte(f.fill(strings.Join(texts, "---\n"))))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetNamespace() == "" && !slices.Contains(clusterKinds, object.GetKind()) {
			object.SetNamespace(f.namespace)
		}
	}
	return objects
}

// clusterKinds are the kinds of the scenarios that have no namespace.
var clusterKinds = []string{"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}

// bundleManifests renders the manifests that a Bundle brings along.
var bundleManifests = manifests.GeneratorFunc(func(_ context.Context, _, _ string, parameters corbeltypes.Unstructurable) ([]client.Object, error) {
	decoded, err := document.Decode("manifests", []byte(valueOf(parameters, "manifests")))
	if err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, len(decoded))
	for _, object := range decoded {
		objects = append(objects, object)
	}
	return objects, nil
})

// generator is that of the components.
func (s *scenario) generator(t testing.TB, f *fixture) manifests.Generator {
	t.Helper()
	if s.rollsOut {
		return upgradable{f}
	}
	if s.chart {
		return bundleChart(t)
	}
	if s.shares {
		return typeSharer{bundleManifests, f.objects(t, []string{crd()})[0]}
	}
	return bundleManifests
}

// typeSharer is a generator with a definition that all components share.
type typeSharer struct {
	manifests.Generator
	definition *unstructured.Unstructured
}

func (s typeSharer) SharedTypes() []corbeltypes.SharedType {
	return []corbeltypes.SharedType{{Name: s.definition.GetName(), Version: "1.0.0", Definition: s.definition}}
}

// letters are those of a namespace's name that can be part of a type's group.
func letters(namespace string) string { return strings.ReplaceAll(namespace, "-", "") }

// scenarios are all that TestCrash and TestTwoLeaders go through.
var scenarios = slices.Concat(
	lifeScenarios,
	typeScenarios,
	policyScenarios,
	namespaceScenarios,
	homeScenarios,
	remoteScenarios,
	rollbackScenarios,
	approvalScenarios,
)
