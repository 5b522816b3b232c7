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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// sharing is an engine with a shared type. It records the requests and the notifications of the engine.
type sharing struct {
	*bench
	*traffic
	crd *unstructured.Unstructured

	lock    sync.Mutex
	changed []string // owners
}

// share returns an engine, in the namespace of another one, that has the definition in a version.
func (b *bench) share(crd *unstructured.Unstructured, version string, change ...func(*rest.Config)) *sharing {
	b.t.Helper()
	s := &sharing{traffic: &traffic{}, crd: crd}
	config := rest.CopyConfig(env.Shared(b.t).Config())
	for _, change := range change {
		change(config)
	}
	config.Wrap(s.wrap)
	target, err := cluster.New(config, cluster.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(target.Close)
	engine, err := reconciler.NewReconciler(engineName, reconciler.Target{Target: target}, keyed(reconciler.ReconcilerOptions{
		SharedTypes: []types.SharedType{{Name: crd.GetName(), Version: version, Definition: crd}},
		Changed: func(owner reconciler.Owner, change reconciler.Change) {
			s.lock.Lock()
			defer s.lock.Unlock()
			if change.Key.Name == crd.GetName() {
				s.changed = append(s.changed, owner.Name)
			}
		},
	}))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(engine.Close)
	s.bench = &bench{Client: b.Client, t: b.t, engine: engine, namespace: b.namespace, name: b.name}
	return s
}

// as returns the same engine with another owner.
func (s *sharing) as(name string) *sharing {
	other := *s.bench
	other.name, other.inventory = name, v1alpha1.Inventory{}
	return &sharing{bench: &other, traffic: s.traffic, crd: s.crd}
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
	for _, request := range s.all {
		if method, path, _ := strings.Cut(request, " "); strings.HasSuffix(path, "/"+s.crd.GetName()) {
			found = append(found, method)
		}
	}
	s.all = nil
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

// TestASharedTypeBelongsToNoOwner installs two owners that need one type, and deletes both.
func TestASharedTypeBelongsToNoOwner(t *testing.T) {
	crd := definition("anvils", "Anvil")
	first := newBench(t).share(crd, "1.0.0")
	second := first.as("second")
	first.untilApplied(crd, instance("Anvil", "first"))
	if got := first.requests(); !slices.Equal(got[:2], []string{"GET", "POST"}) || slices.Contains(got[2:], "PUT") || slices.Contains(got[2:], "POST") {
		t.Errorf("the first owner sent %v for the type", got)
	}
	if diff := cmp.Diff(sharedOf("1.0.0"), first.marks()); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	second.untilApplied(crd, instance("Anvil", "second"))
	first.mustApply(crd, instance("Anvil", "first"))
	if got := first.requests(); len(got) != 0 {
		t.Errorf("the second owner, and the first at rest, sent %v for the type", got)
	}
	if got := append(first.kinds(), second.kinds()...); !slices.Equal(got, []string{"Anvil", "Anvil"}) {
		t.Errorf("recorded: %v", got)
	}
	for _, owner := range []*sharing{first, second} {
		if blockers, err := owner.engine.DeletionBlockers(t.Context(), reconciler.DeleteRequest{Owner: owner.owner(), Inventory: owner.inventory}); err != nil || len(blockers) > 0 {
			t.Errorf("the deletion of %s is blocked: %v, %v", owner.owner().Name, blockers, err)
		}
		owner.until("the deletion", func() bool {
			outcome, err := owner.delete()
			if err != nil {
				t.Fatal(err)
			}
			return outcome.Done()
		})
	}
	if first.live() == nil || len(first.requests()) > 0 {
		t.Error("a deletion of an owner is about the type")
	}
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
	older.awaitChanged()
	older.requests()
	newer.requests()
	outcome := older.mustApply(older.crd)
	if len(outcome.Notes) != 1 || !strings.Contains(outcome.Notes[0].Message, "used as it is: it is that of version 1.10.0, and this operator has version 1.9.0") {
		t.Errorf("notes %v", outcome.Notes)
	}
	for range 3 {
		if outcome := older.mustApply(older.crd); len(outcome.Notes) > 0 {
			t.Errorf("it was noted again: %v", outcome.Notes)
		}
		newer.mustApply(newer.crd)
	}
	if got := append(older.requests(), newer.requests()...); !slices.Equal(got, []string{"GET"}) {
		t.Errorf("at rest: %v", got)
	}
	older.forgetChanges()
	if err := older.Delete(t.Context(), older.live()); err != nil {
		t.Fatal(err)
	}
	older.awaitChanged()
	older.untilApplied(older.crd) // the higher version does not hide that the type is gone
	newer.untilApplied(newer.crd)
	older.requests()
	newer.requests()
	// Two builds of one version with other contents: each writes once, and the last one stays.
	twin.untilApplied(twin.crd)
	newer.awaitChanged()
	newer.mustApply(newer.crd)
	if got := newer.column(); got != "twin" {
		t.Errorf("the column is %q", got)
	}
	restarted := b.share(newer.crd, "1.10.0")
	restarted.untilApplied(restarted.crd)
	twin.awaitChanged()
	if plan := twin.foresee(twin.traffic, reconciler.ApplyRequest{Owner: twin.owner(), Namespace: twin.namespace, Objects: []client.Object{twin.crd}}); strings.Contains(plan.String(), "is changed") {
		t.Errorf("a plan says that it is written again:\n%s", plan)
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
	if err := s.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), s.live()); err != nil {
		t.Fatal(err)
	}
	s.awaitChanged()
	s.until("the type again", func() bool {
		outcome, err := s.apply(crd)
		return err == nil && outcome.Done() && s.live() != nil && s.live().GetUID() != live.GetUID()
	})

	// What changes while no process runs is found by the next one.
	s.engine.Close()
	edited := s.live()
	edited.Object["spec"] = withColumn(crd, "theirs").Object["spec"]
	if err := s.Update(t.Context(), edited, client.FieldOwner("editor")); err != nil {
		t.Fatal(err)
	}
	next := s.share(crd, "1.0.0")
	next.untilApplied(crd)
	if got := next.requests(); next.column() != "ours" || !slices.Equal(got, []string{"GET", "GET", "PUT"}) {
		t.Errorf("column %q after a restart and %v", next.column(), got)
	}
	again := s.share(crd, "1.0.0")
	again.untilApplied(crd)
	if got := again.requests(); !slices.Equal(got, []string{"GET"}) {
		t.Errorf("after a restart at rest: %v", got)
	}
}

// TestATypeOfOneOwnerBecomesAShared one takes over what a former version has recorded: the definition with the owner's label.
func TestATypeOfOneOwnerBecomesASharedOne(t *testing.T) {
	crd := definition("edgers", "Edger")
	b := newBench(t)
	b.untilApplied(crd, instance("Edger", "one"))
	s := b.share(crd, "1.0.0")
	s.inventory = b.inventory
	s.mustApply(crd, instance("Edger", "one"))
	if diff := cmp.Diff(sharedOf("1.0.0"), s.marks()); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if !slices.Equal(s.kinds(), []string{"Edger"}) {
		t.Errorf("recorded %v", s.kinds())
	}
	if want := []string{"PUT /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + crd.GetName()}; !slices.Equal(s.accepted, want) {
		t.Errorf("writes %v", s.accepted)
	}

	// One that is created once keeps the label until its owner is deleted.
	once := definition("files", "File")
	once.SetAnnotations(map[string]string{engineName + "/reconcile-policy": "once"})
	b = newBench(t)
	b.untilApplied(once)
	s = b.share(definition("files", "File"), "1.0.0")
	s.inventory = b.inventory
	s.mustApply(once)
	if s.marks()["label owner-id"] == "" || len(s.accepted) > 0 {
		t.Errorf("marks %v, writes %v", s.marks(), s.accepted)
	}
	s.requests()
	if s.mustApply(once); len(s.requests()) > 0 {
		t.Error("a definition without the label is read at rest")
	}
	s.until("the deletion", func() bool {
		outcome, err := s.delete()
		return err == nil && outcome.Done()
	})
	if got := s.requests(); s.live() == nil || len(s.live().GetLabels()) > 0 || slices.Contains(got, "DELETE") {
		t.Errorf("labels %v after %v", s.live().GetLabels(), got)
	}
}

// TestAnOwnerChangesNoSharedType has objects with another content than the generator's, and with the label.
func TestAnOwnerChangesNoSharedType(t *testing.T) {
	crd := definition("gimlets", "Gimlet")
	s := newBench(t).share(crd, "1.0.0")
	s.untilApplied(crd)
	// A stored set says only that the type is needed.
	outcome, err := s.engine.Apply(t.Context(), reconciler.ApplyRequest{
		Owner: s.owner(), Namespace: s.namespace, Objects: []client.Object{withColumn(crd, "stored")}, Stored: true, Record: s.record,
	})
	if err != nil || !outcome.Done() || s.column() != "" {
		t.Errorf("a stored set: %v, column %q", err, s.column())
	}
	if _, err := s.apply(withColumn(crd, "own")); err == nil || !strings.Contains(err.Error(), "belongs to all components of the operator, which share it") {
		t.Errorf("another content: %v", err)
	}
	// A definition that an owner has made its own stays its own, also when what it applies is stored.
	kits := definition("burins", "Burin")
	mine := s.as("mine").share(kits, "1.0.0")
	mine.untilApplied(withColumn(kits, "own"))
	for _, stored := range []bool{true, false} {
		outcome, err := mine.engine.Apply(t.Context(), reconciler.ApplyRequest{
			Owner: mine.owner(), Namespace: mine.namespace, Objects: []client.Object{withColumn(kits, "own")}, Stored: stored, Inventory: mine.inventory, Record: mine.record,
		})
		if mine.inventory = outcome.Inventory; err != nil || !outcome.Done() || mine.column() != "own" || mine.live().GetLabels()[engineName+"/owner-id"] == "" {
			t.Errorf("stored %t: %v, column %q, labels %v", stored, err, mine.column(), mine.live().GetLabels())
		}
	}
	labelled := crd.DeepCopy()
	labelled.SetAnnotations(map[string]string{engineName + "/shared": "abc 9.0.0"})
	if _, err := s.apply(labelled); err == nil || !strings.Contains(err.Error(), crd.GetName()+": metadata.annotations: "+engineName+"/shared is set by the operator only") {
		t.Errorf("a manifest with the annotation: %v", err)
	}
	if _, err := s.apply(config("one", "1", "shared", "abc")); err == nil || !strings.Contains(err.Error(), "is set by the operator only") {
		t.Errorf("a ConfigMap with the annotation: %v", err)
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
	for range 2 {
		kept.until("the stored set is applied", func() bool {
			outcome, err = kept.engine.Apply(t.Context(), reconciler.ApplyRequest{
				Owner: kept.owner(), Namespace: kept.namespace, Objects: []client.Object{crd, instance("Hoist", "kept")}, Stored: true,
				Inventory: kept.inventory, Record: kept.record,
			})
			kept.inventory = outcome.Inventory
			return err == nil && outcome.Done()
		})
	}
	if _, err := again.apply(breaking); err == nil {
		t.Error("the next owner does not see the mistake")
	}
}

// TestSharedTypesAreReadAtOnce has an owner that needs three types, and a server that answers when it was asked for all of them.
func TestSharedTypesAreReadAtOnce(t *testing.T) {
	all := make(chan struct{})
	var asked atomic.Int32
	config := rest.CopyConfig(env.Shared(t).Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if !strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
				return next.RoundTrip(r)
			}
			if asked.Add(1) == 3 {
				close(all)
			}
			select {
			case <-all:
			case <-r.Context().Done():
			}
			return nil, errors.New("no answer")
		})
	})
	target, err := cluster.New(config, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	var shared []types.SharedType
	var objects []client.Object
	for _, name := range []string{"Awl", "Adze", "Auger"} {
		crd := definition(strings.ToLower(name)+"s", name)
		shared, objects = append(shared, types.SharedType{Name: crd.GetName(), Version: "1.0.0", Definition: crd}), append(objects, crd)
	}
	engine, err := reconciler.NewReconciler(engineName, reconciler.Target{Target: target}, keyed(reconciler.ReconcilerOptions{SharedTypes: shared}))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.engine = engine
	if outcome, err := b.apply(objects...); outcome.Done() || asked.Load() != 3 {
		t.Errorf("%d requests, error %v", asked.Load(), err)
	}
}

// TestASharedTypeThatMayNotBeWrittenIsUsedIfItIsServed acts as a user without any rights on definitions.
func TestASharedTypeThatMayNotBeWrittenIsUsedIfItIsServed(t *testing.T) {
	crd := definition("irons", "Iron")
	b := newBench(t)
	poor := b.share(crd, "1.0.0", func(config *rest.Config) { config.Impersonate.UserName = b.writerOfConfigMaps() })
	var outcome reconciler.Outcome
	var err error
	b.until("a refusal", func() bool {
		outcome, err = poor.apply(crd, config("one", "1"))
		forbidden, ok := errors.AsType[*reconciler.ForbiddenError](err)
		return ok && strings.Contains(forbidden.Object, crd.GetName()) && strings.Contains(outcome.Missing.String(), "customresourcedefinitions")
	})
	b.share(crd, "1.0.0").untilApplied(crd)
	b.until("the ConfigMap", func() bool {
		outcome, err = poor.apply(crd, config("one", "1"))
		return err == nil && outcome.Done()
	})
	if len(outcome.Notes) != 1 || !strings.Contains(outcome.Notes[0].Message, "is used as it is: it cannot be read") {
		t.Errorf("notes %v", outcome.Notes)
	}
	if outcome := poor.mustApply(crd, config("one", "1")); len(outcome.Notes) > 0 {
		t.Errorf("it was noted again: %v", outcome.Notes)
	}
}

// writerOfConfigMaps returns a user who may write ConfigMaps in the namespace of the bench, and nothing else.
func (b *bench) writerOfConfigMaps(more ...rbacv1.PolicyRule) string {
	b.t.Helper()
	name := "writer-" + b.namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}}
	everywhere := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: append(more,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	)}
	all := &rbacv1.ClusterRoleBinding{ObjectMeta: everywhere.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: binding.Subjects}
	for _, object := range []client.Object{role, binding, everywhere, all} {
		if err := b.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
	}
	return name
}

// TestAPlanSaysWhatBecomesOfSharedTypes plans before the type exists, when it is as it should be, and when its next version breaks objects.
func TestAPlanSaysWhatBecomesOfSharedTypes(t *testing.T) {
	crd := definition("jigs", "Jig")
	s := newBench(t).share(crd, "1.0.0")
	foresee := func(s *sharing, crd *unstructured.Unstructured) report.Plan {
		t.Helper()
		return s.foresee(s.traffic, reconciler.ApplyRequest{Owner: s.owner(), Namespace: s.namespace, Objects: []client.Object{crd, instance("Jig", "one")}})
	}
	got := foresee(s, crd)
	if len(got.Changes) != 1 || got.Changes[0].Key.Kind != "Jig" || len(got.Notes) != 1 || !strings.Contains(got.Notes[0].Message, "is created by the first component that is reconciled, without approval or turn") {
		t.Errorf("before it exists:\n%s", got)
	}
	s.untilApplied(crd, instance("Jig", "one"))
	if got := foresee(s, crd); got.String() != "no changes\n" {
		t.Errorf("at rest:\n%s", got)
	}
	next := s.share(withColumn(crd, "next"), "1.1.0")
	next.inventory = s.inventory
	if got := foresee(next, next.crd); len(got.Changes) != 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0].Message, "is changed (manifest changed)") {
		t.Errorf("the next version:\n%s", got)
	}
	readers := next.writerOfConfigMaps(rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}})
	reader := s.as("reader").share(next.crd, "1.1.0", func(config *rest.Config) { config.Impersonate.UserName = readers })
	reader.until("a plan of a user who may not change it", func() bool { // the rights take a moment
		got, err := reader.engine.Plan(t.Context(), reconciler.ApplyRequest{Owner: reader.owner(), Namespace: reader.namespace, Objects: []client.Object{next.crd, config("one", "1")}})
		return err == nil && len(got.Changes) == 1 && got.Changes[0].Key.Kind == "ConfigMap" && len(got.Notes) == 1 && strings.Contains(got.Notes[0].Message, "is used as it is: replace")
	})
	breaking := crd.DeepCopy()
	breaking.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	last := s.share(breaking, "2.0.0")
	last.inventory = s.inventory
	if got := foresee(last, breaking); len(got.Changes) != 1 || got.Changes[0].Class != report.ChangeRefused || !strings.Contains(got.Changes[0].Message, "UnknownFieldsPruned") {
		t.Errorf("a version that breaks objects:\n%s", got)
	}
}

// TestACrashAtEachRequestLosesNoSharedType lets a process die at each of its requests, before or after the server has executed it. A
// process of the next version goes on.
func TestACrashAtEachRequestLosesNoSharedType(t *testing.T) {
	crd := func(name string) *unstructured.Unstructured { return definition(name+"s", "L"+name[1:]) }
	whole := newBench(t).share(crd("lathe"), "1.0.0")
	whole.untilApplied(whole.crd, instance("Lathe", "one"))
	for i, request := range whole.all {
		for _, after := range []bool{false, true} {
			if after && strings.HasPrefix(request, http.MethodGet) {
				continue // it is the same as before the next one
			}
			t.Run(fmt.Sprintf("request %d, after %t", i+1, after), func(t *testing.T) {
				t.Parallel()
				name := fmt.Sprintf("lathe%d%t", i+1, after)
				crd, b, one := crd(name), newBench(t), instance("L"+name[1:], "one")
				dies := b.share(withColumn(crd, "one"), "1.0.0", func(config *rest.Config) { config.Wrap(dyingAt(int64(i+1), after)) })
				for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
					if outcome, err := dies.apply(dies.crd, one); err != nil && dies.total() > i || err == nil && outcome.Done() {
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

func (c *traffic) total() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return len(c.all)
}

// dyingAt returns a transport that sends no request any more from one on, or sends that one and loses its answer.
func dyingAt(deadly int64, after bool) func(http.RoundTripper) http.RoundTripper {
	var sent atomic.Int64
	return func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			n := sent.Add(1)
			if n < deadly {
				return next.RoundTrip(r)
			}
			if n == deadly && after {
				if answer, err := next.RoundTrip(r); err == nil {
					_ = answer.Body.Close()
				}
			}
			return nil, errors.New("we have crashed")
		})
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
	if got := newer.column(); got != "newer" {
		t.Errorf("the column is %q", got)
	}
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
