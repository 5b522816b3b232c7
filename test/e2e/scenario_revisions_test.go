// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

// change is a change of a component: of its manifests, and of the revision that it is pinned to.
type change struct {
	content []string
	// rollbackTo is the revision that the annotation names; 0 means that there is none.
	rollbackTo int64
	// requireApproval is set if revisions have to be approved from then on, approve if the one
	// that waits is approved.
	requireApproval, approve bool
	// reason is that of condition Ready when the change is applied, if it is not Ready.
	reason string
	// history is that of the component then, the latest revision first.
	history []string
	// late is the value that another client gives to the key late of ConfigMap source.
	late string
}

// do asks for the change of a component.
func (c change) do(t testing.TB, f *fixture, name string) {
	t.Helper()
	eventually(t, "the change of the component", func(ctx context.Context) error {
		bundle := f.named(name)
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if err := c.to(f, bundle); err != nil {
			return err
		}
		return f.Update(ctx, bundle)
	})
}

// to makes the change to a component that is not stored.
func (c change) to(f *fixture, bundle *Bundle) error {
	if c.content != nil {
		bundle.Spec.Values = f.values(c.content)
	}
	annotations := map[string]string{}
	if c.rollbackTo != 0 {
		annotations[vocabulary.AnnotationRollbackTo] = strconv.FormatInt(c.rollbackTo, 10)
	}
	if c.requireApproval {
		annotations[vocabulary.AnnotationRequireApproval] = "true"
	}
	if c.approve {
		if bundle.Status.Approval == nil {
			return errors.New("no revision waits for its approval")
		}
		annotations[vocabulary.AnnotationApprove] = bundle.Status.Approval.Hash
	}
	delete(bundle.Annotations, reconcilerName+"/"+vocabulary.AnnotationRollbackTo)
	for name, value := range annotations {
		metav1.SetMetaDataAnnotation(&bundle.ObjectMeta, reconcilerName+"/"+name, value)
	}
	return nil
}

// await waits until the change of component main is applied.
func (c change) await(t testing.TB, f *fixture) {
	t.Helper()
	s := &scenario{desired: map[string][]string{"main": nil}, ends: map[string]string{"main": c.reason}, history: c.history}
	eventually(t, "the change to be applied", func(ctx context.Context) error { return s.finished(ctx, f) })
}

// historyOf returns each revision with its result and, for a rollback, the earlier revision.
func historyOf(bundle *Bundle) []string {
	var texts []string
	for _, entry := range bundle.Status.History {
		text := fmt.Sprintf("%d %s", entry.Revision, entry.Result)
		if entry.RollbackTo != 0 {
			text += fmt.Sprintf(" to %d", entry.RollbackTo)
		}
		texts = append(texts, text)
	}
	return texts
}

// historyInSnapshot is historyOf without the results but failures: under a fault, a revision may have
// been ready for a moment that is not ready at the end without one.
func historyInSnapshot(bundle *Bundle) []string {
	texts := historyOf(bundle)
	for i := range texts {
		for _, result := range []v1alpha1.RevisionResult{v1alpha1.RevisionProcessing, v1alpha1.RevisionReady, v1alpha1.RevisionSuperseded} {
			texts[i] = strings.Replace(texts[i], " "+string(result), "", 1)
		}
	}
	return texts
}

// pinnedTo returns the revision with the manifests that are applied in place of those of the spec; 0
// if there is none.
func pinnedTo(bundle *Bundle) int64 {
	if len(bundle.Status.History) == 0 || bundle.Status.History[0].Revision != bundle.Status.Revision {
		return 0
	}
	return bundle.Status.History[0].RollbackTo
}

// everyRevisionCanBeAppliedAgain rolls back to every revision that was ready.
func everyRevisionCanBeAppliedAgain(t testing.TB, f *fixture) {
	t.Helper()
	bundle := f.named("main")
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle); err != nil {
		t.Fatal(err)
	}
	next, kept, pinned := bundle.Status.Revision, historyOf(bundle), bundle.Annotations[reconcilerName+"/"+vocabulary.AnnotationRollbackTo]
	for _, entry := range bundle.Status.History {
		if entry.Result != v1alpha1.RevisionReady || entry.Revision == bundle.Status.Revision || pinned == strconv.FormatInt(entry.Revision, 10) {
			continue
		}
		pinned = ""
		next++
		kept = append([]string{fmt.Sprintf("%d Ready to %d", next, entry.Revision)}, kept...)
		c := change{rollbackTo: entry.Revision, history: kept}
		c.do(t, f, "main")
		c.await(t, f)
	}
}

// bundleChart is a chart with the manifests of a Bundle as its templates.
func bundleChart(t testing.TB) manifests.Generator {
	t.Helper()
	return chart(t, "", "{{ tpl .Values.manifests . }}\n")
}

// chart returns a chart with values, if there are any, and one file of templates.
func chart(t testing.TB, values, templates string) manifests.Generator {
	t.Helper()
	files := fstest.MapFS{
		"Chart.yaml":         {Data: []byte("apiVersion: v2\nname: bundle\nversion: 1.0.0\n")},
		"templates/all.yaml": {Data: []byte(templates)},
	}
	if values != "" {
		files["values.yaml"] = &fstest.MapFile{Data: []byte(values)}
	}
	g, err := helm.New(files, ".", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// hookedJob is a hook of a chart that is complete as soon as its controller looks at it.
func hookedJob(name, event string) string {
	return job(name, "{{ .Release.Revision }}", "helm.sh/hook", event)
}

// failingJob is a Job with a pod that fails.
func failingJob(name, version string, annotations ...string) string {
	return strings.NewReplacer("completions: 0, parallelism: 0", "backoffLimit: 0", "{annotations: {", "{annotations: {podsim.corbel.run/exit-code: '1', ").
		Replace(job(name, version, annotations...))
}

func claim(name string) string {
	return head("v1", "PersistentVolumeClaim", name, nil) + "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
}

// The revisions of a chart. The second one has a volume, and lacks an object of the first one.
var (
	hooksOfChart = []string{hookedJob("before", "pre-upgrade"), hookedJob("back", "pre-rollback")}
	ownOne       = []string{configMap("changed", "1"), configMap("one", "1"), configMap("same", "1")}
	ownTwo       = []string{configMap("changed", "2"), claim("data"), configMap("same", "1"), configMap("two", "2", "apply-order", "1")}
	chartOne     = slices.Concat(hooksOfChart, ownOne)
	chartTwo     = slices.Concat(hooksOfChart, ownTwo)

	upgraded   = change{content: chartTwo, history: []string{"2 Ready", "1 Ready"}}
	rolledBack = change{rollbackTo: 1, history: append([]string{"3 Ready to 1"}, upgraded.history...)}
	unpinned   = change{history: append([]string{"4 Ready"}, rolledBack.history...)}
)

// The volume of a later revision stays during a rollback.
var (
	inRevisionTwo = []string{
		"ConfigMap $NS/changed", "ConfigMap $NS/same", "ConfigMap $NS/two", "Job $NS/before", "PersistentVolumeClaim $NS/data",
	}
	ranOfChart = []string{"Job $NS/back", "Job $NS/before"}
	inRollback = []string{
		"ConfigMap $NS/changed", "ConfigMap $NS/one", "ConfigMap $NS/same", "Job $NS/back", "Job $NS/before", "PersistentVolumeClaim $NS/data",
	}
)

// annotationScenarios are the ways of a component into a rollback that its annotation asks for, and
// out of it.
var annotationScenarios = []*scenario{
	{
		name:      "upgrade of a chart with a volume",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		desired:   map[string][]string{"main": chartTwo},
		history:   upgraded.history,
		applied:   ownTwo,
		owned:     inRevisionTwo,
		jobs:      []string{"before of version 2 for revision 2"},
		after:     everyRevisionCanBeAppliedAgain,
	},
	{
		name:      "roll back by annotation",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		changes:   []change{upgraded},
		last:      &rolledBack,
		history:   rolledBack.history,
		applied:   ownOne,
		owned:     inRollback,
		jobs:      []string{"back of version 1 for revision 3", "before of version 2 for revision 2"},
		after:     everyRevisionCanBeAppliedAgain,
	},
	{
		name:      "remove the annotation of a rollback",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		changes:   []change{upgraded, rolledBack},
		last:      &unpinned,
		history:   unpinned.history,
		applied:   ownTwo,
		owned:     inRevisionTwo,
		recreated: []string{"Job $NS/before"},
		jobs: []string{
			"back of version 1 for revision 3", "before of version 2 for revision 2", "before of version 4 for revision 4",
		},
		after: everyRevisionCanBeAppliedAgain,
	},
	{
		name:      "delete while it is rolled back",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		changes:   []change{upgraded, rolledBack},
	},
}

// What a failed revision has: a hook that fails before everything else, or a Job that fails after
// the other objects have changed.
var (
	failingHook = slices.Concat(chartTwo, []string{failingJob("fails", "{{ .Release.Revision }}", "helm.sh/hook", "pre-upgrade", "helm.sh/hook-weight", "1")})
	failingWork = slices.Concat(chartTwo, []string{failingJob("work", "2", "apply-order", "2")})

	failed = change{
		content: failingWork, reason: vocabulary.ReasonRolledBack, history: []string{"3 Ready to 1", "2 Failed", "1 Ready"},
	}
)

// failureScenarios have revisions that fail and are rolled back once.
var failureScenarios = []*scenario{
	{
		name:      "a hook fails, and the component is rolled back",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		settings:  rollsBackOnFailure,
		desired:   map[string][]string{"main": failingHook},
		ends:      map[string]string{"main": failed.reason},
		history:   failed.history,
		applied:   ownOne,
		owned: []string{
			"ConfigMap $NS/changed", "ConfigMap $NS/one", "ConfigMap $NS/same", "Job $NS/back", "Job $NS/before", "Job $NS/fails",
		},
		jobs: []string{"back of version 1 for revision 3", "before of version 2 for revision 2", "fails of version 2 for revision 2"},
	},
	{
		name:      "a Job fails, and the component is rolled back",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		settings:  rollsBackOnFailure,
		desired:   map[string][]string{"main": failingWork},
		ends:      map[string]string{"main": failed.reason},
		history:   failed.history,
		applied:   ownOne,
		owned:     inRollback,
		recreated: []string{"ConfigMap $NS/one"},
		jobs:      []string{"back of version 1 for revision 3", "before of version 2 for revision 2", "work of version 2"},
	},
	{
		name:      "change a component that is rolled back",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		settings:  rollsBackOnFailure,
		changes:   []change{failed},
		desired:   map[string][]string{"main": chartTwo},
		history:   append([]string{"4 Ready"}, failed.history...),
		applied:   ownTwo,
		owned:     inRevisionTwo,
		recreated: []string{"Job $NS/before"},
		jobs: []string{
			"back of version 1 for revision 3", "before of version 2 for revision 2", "before of version 4 for revision 4", "work of version 2",
		},
		after: everyRevisionCanBeAppliedAgain,
	},
}

func rollsBackOnFailure(_ string, spec *BundleSpec) { spec.RollbackOnFailure = new(true) }

var rollbackScenarios = slices.Concat(annotationScenarios, failureScenarios)

// oneAtATime is the option of the operators that roll out.
var oneAtATime = &component.Rollout{MaxUnavailable: intstr.FromInt32(1)}

// upgradable renders the manifests of a Bundle. Its second version writes "second" for "first".
type upgradable struct{ *fixture }

func (u upgradable) Digest() string {
	if u.upgraded.Load() {
		return "second"
	}
	return "first"
}

func (u upgradable) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	text := valueOf(parameters, "manifests")
	if u.upgraded.Load() {
		text = strings.ReplaceAll(text, "first", "second")
	}
	return bundleManifests(ctx, namespace, name, values{"manifests": text})
}

// upgrade makes the operators, and their successors, those of the second version.
func upgrade(t testing.TB, f *fixture) {
	t.Helper()
	f.upgraded.Store(true)
	f.reconcileAll(t)
}

// reconcileAll asks for a reconcile of all Bundles, as the start of an operator does.
func (f *fixture) reconcileAll(t testing.TB) {
	t.Helper()
	list := &BundleList{}
	if err := f.List(t.Context(), list, client.InNamespace(f.namespace)); err != nil {
		t.Fatal(err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"%s/%s":"%s"}}}`, reconcilerName, vocabulary.AnnotationReconcileAt, time.Now().UTC().Format(time.RFC3339Nano))
	for i := range list.Items {
		if err := f.Patch(t.Context(), &list.Items[i], client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}
}

// watchRollout expects, until it ends, that no more components are unavailable at the same time than may be.
func (f *fixture) watchRollout(t testing.TB) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			list, unavailable := &BundleList{}, []string{}
			if err := f.List(ctx, list, client.InNamespace(f.namespace)); err == nil {
				for i := range list.Items {
					history := list.Items[i].Status.History
					if len(history) > 1 && history[0].Generator != history[1].Generator && history[0].Result != v1alpha1.RevisionReady {
						unavailable = append(unavailable, list.Items[i].Name)
					}
				}
			}
			if len(unavailable) > 1 {
				t.Errorf("these are unavailable at the same time: %v", unavailable)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// fleetOf are the manifests of three components.
func fleetOf(version string, annotations ...string) map[string][]string {
	return map[string][]string{
		"main":  {configMap("a", version, annotations...)},
		"other": {configMap("b", version), configMap("c", version, "apply-order", "1")},
		"third": {configMap("d", version)},
	}
}

var ownedByFleet = []string{"ConfigMap $NS/a", "ConfigMap $NS/b", "ConfigMap $NS/c", "ConfigMap $NS/d"}

// rolloutScenarios are upgrades of an operator with several components.
var rolloutScenarios = []*scenario{
	{
		name:      "roll out another version",
		rollsOut:  true,
		installed: fleetOf("first"),
		desired:   fleetOf("second"),
		act:       upgrade,
		history:   upgraded.history,
		owned:     ownedByFleet,
	},
	{
		name:      "roll out a version that breaks",
		rollsOut:  true,
		installed: fleetOf("first", "ready-when", "self.data.version.startsWith('f')"),
		settings:  func(_ string, spec *BundleSpec) { spec.Timeout = &types.Duration{Duration: 2 * time.Second} },
		desired: map[string][]string{
			"main": {configMap("a", "second")}, "other": fleetOf("first")["other"], "third": fleetOf("first")["third"],
		},
		act:   upgrade,
		ends:  map[string]string{"main": vocabulary.ReasonTimeout},
		owned: ownedByFleet,
		after: func(t testing.TB, f *fixture) {
			for name, stopped := range map[string]bool{"main": true, "other": false, "third": false} {
				bundle := f.named(name)
				err := f.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle)
				if err != nil || meta.IsStatusConditionTrue(bundle.Status.Conditions, v1alpha1.ConditionRolloutStopped) != stopped {
					t.Errorf("component %s: %v, conditions %+v", name, err, bundle.Status.Conditions)
				}
			}
		},
	},
}

// TestTwoLeadersOfARollout lets an operator stand still before every request of a roll-out, while another
// one is elected and brings the roll-out to its end. Never are more components unavailable than may be.
func TestTwoLeadersOfARollout(t *testing.T) {
	t.Parallel()
	stopAtEachRequest(t, 0, nil, func(t *testing.T, b *barrier, _ *watchFault) int { return rolloutScenarios[0].playTwoLeaders(t, b) })
}

// playTwoLeaders returns the number of requests of the first operator.
func (s *scenario) playTwoLeaders(t *testing.T, b *barrier) int {
	t.Helper()
	f := newFixture(t)
	newCast(t, f, f.objects(t, s.texts()))
	f.rollout, f.mayBeIdle = oneAtATime, true
	one := f.startWith(t, s.generator(t, f), func(next http.RoundTripper) http.RoundTripper { return b.wrap(next) })
	s.prepare(t, f)
	defer f.watchRollout(t)()
	b.arm()
	s.proceed(t, f)
	eventually(t, "the first operator to stop or to be done", func(ctx context.Context) error {
		if b.isDown() {
			return nil
		}
		return s.isRolledOut(ctx, f)
	})
	total := b.requests()
	two := f.startWith(t, s.generator(t, f), nil)
	defer two.stop(t)
	eventually(t, "the end of the roll-out", func(ctx context.Context) error { return s.isRolledOut(ctx, f) })
	close(b.resume)
	b.await(t)
	one.stop(t)
	f.reconcileAll(t)
	eventually(t, "the roll-out to stay at its end", func(ctx context.Context) error {
		return errors.Join(s.isRolledOut(ctx, f), s.content(ctx, t, f))
	})
	return total
}

// isRolledOut returns an error as long as a component has not exactly one revision of the second version, which is ready.
func (s *scenario) isRolledOut(ctx context.Context, f *fixture) error {
	for _, name := range s.names() {
		bundle := f.named(name)
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if got := historyOf(bundle); !bundle.Status.IsReady() || strings.Join(got, ", ") != strings.Join(s.history, ", ") {
			_, reason, message := bundle.Status.GetState()
			return fmt.Errorf("component %s: %q, %s: %s", name, got, reason, message)
		}
	}
	return nil
}
