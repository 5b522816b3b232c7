// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// sharing is an engine with a shared type. It records the requests and the notifications of the engine.
type sharing struct {
	*bench
	crd *unstructured.Unstructured

	lock    sync.Mutex
	changed []string // owners
}

// share returns an engine, in the namespace of another one, that has the definition in a version.
func (b *bench) share(crd *unstructured.Unstructured, version string, change ...func(*rest.Config)) *sharing {
	b.t.Helper()
	s := &sharing{bench: &bench{Client: b.Client, t: b.t, namespace: b.namespace, name: b.name}, crd: crd}
	s.interpose(b.t, reconciler.ReconcilerOptions{
		SharedTypes: []types.SharedType{{Name: crd.GetName(), Version: version, Definition: crd}},
		Changed: func(owner reconciler.Owner, change reconciler.Change) {
			s.lock.Lock()
			defer s.lock.Unlock()
			if change.Key.Name == crd.GetName() {
				s.changed = append(s.changed, owner.Name)
			}
		},
	}, change...)
	return s
}

// as returns the same engine with another owner.
func (s *sharing) as(name string) *sharing {
	other := *s.bench
	other.name, other.inventory = name, v1alpha1.Inventory{}
	return &sharing{bench: &other, crd: s.crd}
}

// awaitChanged waits until an owner is notified.
func (s *sharing) awaitChanged() {
	s.t.Helper()
	s.until("a notification about the type", func() bool {
		s.lock.Lock()
		defer s.lock.Unlock()
		notified := len(s.changed) > 0
		s.changed = nil
		return notified
	})
}

func (s *sharing) forgetChanges() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.changed = nil
}

// requests returns those about the definition since the last call, without watches.
func (s *sharing) requests() []string {
	s.traffic.lock.Lock()
	defer s.traffic.lock.Unlock()
	var found []string
	for _, request := range s.traffic.all {
		if method, path, _ := strings.Cut(request, " "); strings.HasSuffix(path, "/"+s.crd.GetName()) {
			found = append(found, method)
		}
	}
	s.traffic.all = nil
	return found
}

// live reads the definition; nil if there is none.
func (s *sharing) live() *unstructured.Unstructured {
	s.t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(s.crd.GroupVersionKind())
	err := s.Get(s.t.Context(), client.ObjectKeyFromObject(s.crd), live)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return live
}

// marks are the labels and annotations of the engine that the definition has, without the hash.
func (s *sharing) marks() map[string]string {
	s.t.Helper()
	marks, live := map[string]string{}, s.live()
	for key, value := range live.GetLabels() {
		marks["label "+strings.TrimPrefix(key, engineName+"/")] = value
	}
	for key, value := range live.GetAnnotations() {
		_, version, _ := strings.Cut(value, " ")
		marks["annotation "+strings.TrimPrefix(key, engineName+"/")] = version
	}
	return marks
}

// sharedOf are the marks of a version.
func sharedOf(version string) map[string]string {
	return map[string]string{"label shared": "true", "annotation shared": version}
}

// withColumn returns a definition with a column for kubectl, which breaks nothing.
func withColumn(crd *unstructured.Unstructured, name string) *unstructured.Unstructured {
	crd = crd.DeepCopy()
	version := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["additionalPrinterColumns"] = []any{map[string]any{"name": name, "type": "string", "jsonPath": ".metadata.name"}}
	return crd
}

// column returns the name of that column.
func (s *sharing) column() string {
	s.t.Helper()
	versions, _, _ := unstructured.NestedSlice(s.live().Object, "spec", "versions")
	columns, _ := versions[0].(map[string]any)["additionalPrinterColumns"].([]any)
	if len(columns) == 0 {
		return ""
	}
	return columns[0].(map[string]any)["name"].(string)
}

func (s *sharing) kinds() []string {
	var kinds []string
	for _, item := range s.inventory.Items {
		kinds = append(kinds, item.Kind)
	}
	return kinds
}

// TestTwoVersionsOfASharedTypeAreWrittenOnce lets engines of several versions apply one type in turns.
func TestTwoVersionsOfASharedTypeAreWrittenOnce(t *testing.T) {
	crd := definition("bellows", "Bellow")
	b := newBench(t)
	older, newer := b.share(withColumn(crd, "older"), "1.9.0"), b.share(withColumn(crd, "newer"), "1.10.0")
	twin := b.share(withColumn(crd, "twin"), "1.10.0")
	older.untilApplied(older.crd)
	newer.untilApplied(newer.crd)
	if got, want := newer.column(), "newer"; got != want {
		t.Fatalf("the column is %q, not %q", got, want)
	}
	older.requests()
	newer.requests()
	var outcome reconciler.Outcome
	older.until("the older engine notices the other version", func() bool {
		outcome = older.mustApply(older.crd)
		return len(outcome.Notes) > 0
	})
	if len(outcome.Notes) != 1 || !strings.Contains(outcome.Notes[0].Message, "used as it is: it is that of version 1.10.0, and this operator has version 1.9.0") {
		t.Errorf("notes %v", outcome.Notes)
	}
	for range 3 {
		if outcome := older.mustApply(older.crd); len(outcome.Notes) > 0 {
			t.Errorf("it was noted again: %v", outcome.Notes)
		}
		newer.mustApply(newer.crd)
	}
	check.EqualNamed(t, "at rest", []string{"GET"}, append(older.requests(), newer.requests()...))
	older.forgetChanges()
	check.NoError(t, older.Delete(t.Context(), older.live()))
	older.awaitChanged()
	older.untilApplied(older.crd) // the higher version does not hide that the type is gone
	newer.untilApplied(newer.crd)
	older.requests()
	newer.requests()
	// Two builds of one version with other contents: each writes once, and the last one stays.
	twin.untilApplied(twin.crd)
	newer.awaitChanged()
	newer.mustApply(newer.crd)
	check.SameNamed(t, "the column", "twin", newer.column())
	restarted := b.share(newer.crd, "1.10.0")
	restarted.untilApplied(restarted.crd)
	twin.awaitChanged()
	if plan := twin.foresee(twin.request(twin.crd)); strings.Contains(fmt.Sprint(plan.Notes), "is changed") {
		t.Errorf("a plan says that it is written again: %+v", plan)
	}
	if outcome := twin.mustApply(twin.crd); twin.column() != "newer" || len(outcome.Notes) != 1 || !strings.Contains(outcome.Notes[0].Message, "another content of the same version") {
		t.Errorf("column %q, notes %v", twin.column(), outcome.Notes)
	}
}

// TestAChangedSharedTypeIsRepaired changes and deletes the definition by hand.
func TestAChangedSharedTypeIsRepaired(t *testing.T) {
	crd := withColumn(definition("chisels", "Chisel"), "ours")
	s := newBench(t).share(crd, "1.0.0")
	s.untilApplied(crd)
	s.requests()
	edit := func(what string, edited *unstructured.Unstructured) {
		t.Helper()
		s.forgetChanges()
		live := s.live()
		live.Object["spec"] = edited.Object["spec"]
		if err := s.Update(t.Context(), live); err != nil {
			t.Fatal(what, err)
		}
		s.awaitChanged()
	}
	edit("an edit", withColumn(crd, "theirs"))
	s.untilApplied(crd)
	if got := s.requests(); s.column() != "ours" || !slices.Equal(got, []string{"GET", "GET", "PUT"}) { // the second one compares the schemas
		t.Errorf("column %q after %v", s.column(), got)
	}
	s.forgetChanges()
	live := s.live()
	live.SetAnnotations(map[string]string{engineName + "/shared": live.GetAnnotations()[engineName+"/shared"], "example.com/note": "theirs"})
	check.NoError(t, s.Update(t.Context(), live))
	check.NoError(t, s.Delete(t.Context(), s.live()))
	s.awaitChanged()
	s.until("the type again", func() bool {
		outcome, err := s.apply(crd)
		return err == nil && outcome.Done() && s.live() != nil && s.live().GetUID() != live.GetUID()
	})

	// What changes while no process runs is found by the next one.
	s.engine.Close()
	edited := s.live()
	edited.Object["spec"] = withColumn(crd, "theirs").Object["spec"]
	check.NoError(t, s.Update(t.Context(), edited, client.FieldOwner("editor")))
	next := s.share(crd, "1.0.0")
	next.untilApplied(crd)
	if got := next.requests(); next.column() != "ours" || !slices.Equal(got, []string{"GET", "GET", "PUT"}) {
		t.Errorf("column %q after a restart and %v", next.column(), got)
	}
	again := s.share(crd, "1.0.0")
	again.untilApplied(crd)
	check.EqualNamed(t, "after a restart at rest", []string{"GET"}, again.requests())
}

// TestAnOwnerChangesNoSharedType has stored sets with another content than the generator's.
func TestAnOwnerChangesNoSharedType(t *testing.T) {
	crd := definition("gimlets", "Gimlet")
	s := newBench(t).share(crd, "1.0.0")
	s.untilApplied(crd)
	// A stored set says only that the type is needed.
	s.stored = true
	outcome, err := s.apply(withColumn(crd, "stored"))
	if err != nil || !outcome.Done() || s.column() != "" {
		t.Errorf("a stored set: %v, column %q", err, s.column())
	}
	// A definition that an owner has made its own stays its own, also when what it applies is stored.
	kits := definition("burins", "Burin")
	mine := s.as("mine").share(kits, "1.0.0")
	mine.untilApplied(withColumn(kits, "own"))
	for _, stored := range []bool{true, false} {
		mine.stored = stored
		outcome, err := mine.apply(withColumn(kits, "own"))
		if err != nil || !outcome.Done() || mine.column() != "own" || mine.live().GetLabels()[engineName+"/owner-id"] == "" {
			t.Errorf("stored %t: %v, column %q, labels %v", stored, err, mine.column(), mine.live().GetLabels())
		}
	}
}

// TestABreakingChangeOfASharedTypeIsRefused changes a shared type so that its objects break.
func TestABreakingChangeOfASharedTypeIsRefused(t *testing.T) {
	crd := definition("hoists", "Hoist")
	b := newBench(t)
	b.share(crd, "1.0.0").untilApplied(crd)
	breaking := crd.DeepCopy()
	version := breaking.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	next := b.share(breaking, "2.0.0")
	outcome, err := next.apply(breaking, instance("Hoist", "one"))
	if _, refused := errors.AsType[*reconciler.BreakingChangeError](err); !refused || !strings.Contains(err.Error(), "UnknownFieldsPruned") {
		t.Errorf("error %v", err)
	}
	if outcome.Done() || slices.Contains(next.requests(), "PUT") || outcome.Steps["create"] > 0 {
		t.Errorf("steps %v", outcome.Steps)
	}

	// Owners with a stored set go on, and do not hide the mistake from the next owner.
	kept, again := next.as("kept"), next.as("again")
	kept.stored = true
	for range 2 {
		kept.untilApplied(crd, instance("Hoist", "kept"))
	}
	if _, err := again.apply(breaking); err == nil {
		t.Error("the next owner does not see the mistake")
	}
}

// TestSharedTypesAreReadAtOnce has an owner that needs three types, and a server that answers when it was asked for all of them.
func TestSharedTypesAreReadAtOnce(t *testing.T) {
	var shared []types.SharedType
	var objects []client.Object
	for _, name := range []string{"Awl", "Adze", "Auger"} {
		crd := definition(strings.ToLower(name)+"s", name)
		shared, objects = append(shared, types.SharedType{Name: crd.GetName(), Version: "1.0.0", Definition: crd}), append(objects, crd)
	}
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{SharedTypes: shared})
	all := make(chan struct{})
	var asked atomic.Int32
	recorder.Answer = func(sent wire.Sent) (int, any) {
		if !strings.Contains(sent.Path, "/customresourcedefinitions/") {
			return 0, nil
		}
		if asked.Add(1) == 3 {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(time.Minute):
		}
		return http.StatusInternalServerError, wire.Failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, nil)
	}
	if outcome, err := b.apply(objects...); outcome.Done() || asked.Load() != 3 {
		t.Errorf("%d requests, error %v", asked.Load(), err)
	}
}

// TestASharedTypeThatMayNotBeWrittenIsUsedIfItIsServed has a user without any rights on definitions, and one who may read them.
func TestASharedTypeThatMayNotBeWrittenIsUsedIfItIsServed(t *testing.T) {
	unserved, served := definition("irons", "Iron"), parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Foo, plural: foos}, versions: [{name: v1, served: true, storage: true}]}`)
	options := reconciler.ReconcilerOptions{SharedTypes: []types.SharedType{
		{Name: unserved.GetName(), Version: "1.1.0", Definition: unserved}, {Name: served.GetName(), Version: "1.1.0", Definition: served},
	}}
	refuse := func(recorder *wire.Recorder, methods ...string) {
		recorder.Answer = func(sent wire.Sent) (int, any) {
			if !strings.Contains(sent.Path, "/customresourcedefinitions/") || !slices.Contains(methods, sent.Method) {
				return 0, nil
			}
			refusal := wire.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, nil)
			refusal.Message = `customresourcedefinitions.apiextensions.k8s.io is forbidden: User "op" cannot get resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`
			return http.StatusForbidden, refusal
		}
	}
	b, recorder := ownsRecorded(t, options)
	refuse(recorder, http.MethodGet, http.MethodPost)
	outcome, err := b.apply(unserved, config("one", "1"))
	if forbidden, ok := errors.AsType[*reconciler.ForbiddenError](err); !ok || !strings.Contains(forbidden.Object, unserved.GetName()) ||
		!strings.Contains(outcome.Missing.String(), "customresourcedefinitions") {
		t.Errorf("%v, missing %v", err, outcome.Missing)
	}
	outcome = b.mustApply(served, config("one", "1"))
	if len(outcome.Notes) != 1 || !strings.Contains(outcome.Notes[0].Message, "is used as it is: it cannot be read") {
		t.Errorf("notes %v", outcome.Notes)
	}
	if outcome := b.mustApply(served, config("one", "1")); len(outcome.Notes) > 0 {
		t.Errorf("it was noted again: %v", outcome.Notes)
	}

	b, recorder = ownsRecorded(t, options)
	refuse(recorder, http.MethodPut)
	older := withColumn(served, "older")
	older.SetLabels(map[string]string{engineName + "/shared": "true"})
	older.SetAnnotations(map[string]string{engineName + "/shared": "abc 1.0.0"})
	recorder.Put(older)
	plan, err := b.engine.Plan(t.Context(), b.request(served, config("one", "1")))
	if err != nil || len(plan.Changes) != 1 || plan.Changes[0].Key.Kind != "ConfigMap" || len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0].Message, "is used as it is: replace") {
		t.Errorf("%v, the plan of a user who may only read it: %+v", err, plan)
	}
}

// TestAPlanSaysWhatBecomesOfSharedTypes plans before the type exists, when it is as it should be, and when its next version breaks objects.
func TestAPlanSaysWhatBecomesOfSharedTypes(t *testing.T) {
	crd := definition("jigs", "Jig")
	s := newBench(t).share(crd, "1.0.0")
	foresee := func(s *sharing, crd *unstructured.Unstructured) report.Plan {
		t.Helper()
		return s.foresee(s.request(crd, instance("Jig", "one")))
	}
	got := foresee(s, crd)
	if len(got.Changes) != 1 || got.Changes[0].Key.Kind != "Jig" || len(got.Notes) != 1 || !strings.Contains(got.Notes[0].Message, "is created by the first component that is reconciled, without approval or turn") {
		t.Errorf("before it exists: %+v", got)
	}
	s.untilApplied(crd, instance("Jig", "one"))
	if got := foresee(s, crd); len(got.Changes)+len(got.Until)+len(got.Waiting)+len(got.Notes)+len(got.Drifted)+len(got.Incomplete) != 0 {
		t.Errorf("at rest: %+v", got)
	}
	next := s.share(withColumn(crd, "next"), "1.1.0")
	next.inventory = s.inventory
	if got := foresee(next, next.crd); len(got.Changes) != 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0].Message, "is changed (manifest changed)") {
		t.Errorf("the next version: %+v", got)
	}
	breaking := crd.DeepCopy()
	breaking.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	last := s.share(breaking, "2.0.0")
	last.inventory = s.inventory
	if got := foresee(last, breaking); len(got.Changes) != 1 || got.Changes[0].Class != report.ChangeRefused || !strings.Contains(got.Changes[0].Message, "UnknownFieldsPruned") {
		t.Errorf("a version that breaks objects: %+v", got)
	}
}

// TestACrashAtEachRequestLosesNoSharedType lets a process die at each of its requests, before or after the server has executed it. A
// process of the next version goes on.
func TestACrashAtEachRequestLosesNoSharedType(t *testing.T) {
	crd := func(name string) *unstructured.Unstructured { return definition(name+"s", "L"+name[1:]) }
	whole := newBench(t).share(crd("lathe"), "1.0.0")
	whole.untilApplied(whole.crd, instance("Lathe", "one"))
	for i, request := range whole.traffic.all {
		for _, after := range []bool{false, true} {
			if after && strings.HasPrefix(request, http.MethodGet) {
				continue // it is the same as before the next one
			}
			t.Run(fmt.Sprintf("request %d, after %t", i+1, after), func(t *testing.T) {
				t.Parallel()
				name := fmt.Sprintf("lathe%d%t", i+1, after)
				crd, b, one := crd(name), newBench(t), instance("L"+name[1:], "one")
				gate := &wire.Gate{At: i + 1, After: after}
				dies := b.share(withColumn(crd, "one"), "1.0.0", func(config *rest.Config) { config.Wrap(gate.Wrap) })
				for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
					if outcome, err := dies.apply(dies.crd, one); err != nil && gate.HasCrashed() || err == nil && outcome.Done() {
						break
					}
				}
				dies.engine.Close()
				next := b.share(withColumn(crd, "two"), "1.1.0")
				next.inventory = dies.inventory
				next.untilApplied(next.crd, one)
				if diff := cmp.Diff(sharedOf("1.1.0"), next.marks()); diff != "" || next.column() != "two" || !slices.Equal(next.kinds(), []string{one.GetKind()}) {
					t.Errorf("column %q, recorded %v, marks (-want +got):\n%s", next.column(), next.kinds(), diff)
				}
				writes := slices.DeleteFunc(append(dies.requests(), next.requests()...), func(request string) bool { return request == http.MethodGet })
				if len(writes) > 3 { // one was perhaps not executed
					t.Errorf("writes %v", writes)
				}
			})
		}
	}
}

// TestTwoProcessesShareAType lets processes of two versions install and repair one type at the same time.
func TestTwoProcessesShareAType(t *testing.T) {
	crd := definition("mallets", "Mallet")
	b := newBench(t)
	older, newer := b.share(withColumn(crd, "older"), "1.0.0"), b.share(withColumn(crd, "newer"), "2.0.0").as("newer")
	processes := []*sharing{older, newer}
	var running sync.WaitGroup
	for _, s := range processes {
		running.Go(func() {
			deadline := time.Now().Add(time.Minute)
			for rest := 0; rest < 20 && time.Now().Before(deadline); { // also at rest
				if outcome, err := s.apply(s.crd, instance("Mallet", s.owner().Name)); err == nil && outcome.Done() {
					rest++
				}
			}
		})
	}
	running.Wait()
	check.SameNamed(t, "the column", "newer", newer.column())
	writes := 0
	for _, request := range append(older.requests(), newer.requests()...) {
		if request != http.MethodGet {
			writes++
		}
	}
	if writes > 4 { // a creation or an update of each, and one that met the other's
		t.Errorf("%d writes", writes)
	}
	older.mustApply(older.crd, instance("Mallet", "main"))
	newer.mustApply(newer.crd, instance("Mallet", "newer"))
}
