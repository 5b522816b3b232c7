// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	hash "github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/fleet"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// version is a generator of one version of an operator. It makes a ConfigMap with the size of the widget, its
// digest and revision, a text, and the note that a hook has written into its status.
type version struct {
	digest, text string
	err          error
	renders      *int
	blind        bool // the digest of the component is not in its object
}

func (v version) Digest() string { return v.digest }

func (v version) Generate(ctx context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
	if v.renders != nil {
		*v.renders++
	}
	known := manifests.FromContext(ctx)
	digest := known.Digest
	if v.blind {
		digest = ""
	}
	revision := known.Revision
	size, _ := json.Marshal(parameters.ToUnstructured()["size"])
	note := ""
	if component := known.Component; component != nil {
		note = component.(*widget).Status.Note
	}
	return []client.Object{&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
		"data": map[string]any{"text": v.text, "size": string(size), "digest": digest, "revision": strconv.FormatInt(revision, 10), "note": note},
	}}}, v.err
}

// operated is a widget, and the operator that it was reconciled by before.
type operated struct {
	*testing.T
	*handler
	engine  *fakeEngine
	events  *eventLog
	obj     *widget
	renders int
}

func operate(t *testing.T, options ReconcilerOptions) *operated {
	t.Helper()
	o := &operated{T: t, obj: newWidget(), engine: &fakeEngine{manifest: func(request reconciler.ApplyRequest) string {
		text, err := json.Marshal(request.Objects)
		check(t, err)
		return hash.Combine(string(text))
	}}}
	o.handler, o.events = testHandler(t, o.engine, options)
	o.revisions.Renderer.Revisions = historyIn(fake.NewClientBuilder().Build())
	return o
}

// historyIn keeps the history of components in Secrets of a server.
func historyIn(local client.Client) *revisions.Store {
	return revisions.NewStore(revisions.Options{Client: local, Name: "test.corbel.run", FieldOwner: "test", Key: fixedKey("0123").Get})
}

// reconcile reconciles with a version of the operator that has just started. It returns the last request that the engine got.
func (o *operated) reconcile(v version) (reconciler.ApplyRequest, error) {
	o.Helper()
	v.renders, o.renders = &o.renders, 0
	o.revisions.Renderer.Generator, o.memory, o.concluder = v, newMemory(), newConcluder(o.steps)
	_, err := o.applier.createOrUpdate(o.Context(), o.obj, noCommit)
	if len(o.engine.applied) == 0 {
		return reconciler.ApplyRequest{}, err
	}
	return o.engine.applied[len(o.engine.applied)-1], err
}

// upTo brings the widget to a number of revisions, each with another size.
func (o *operated) upTo(revisions int) {
	o.Helper()
	for size := range revisions {
		o.obj.Generation, o.obj.Spec.Size = int64(size)+1, size
		if _, err := o.reconcile(version{digest: "1"}); err != nil || o.obj.Status.Revision != int64(size)+1 {
			o.Fatalf("%v, revision %d", err, o.obj.Status.Revision)
		}
	}
}

// rollOut rolls out a version of the operator.
func (o *operated) rollOut(v version) {
	o.revisions.Renderer.Generator = v
	o.settings.rollout = &fleet.Limits{MaxUnavailable: intstr.FromInt32(1), Canaries: labels.Nothing()}
	o.fleet = newFleet(o.steps, o.local, func(client.ObjectKey) {})
}

// noteHook returns a hook that writes a note into the status of the widget.
func noteHook(note string) HookFunc[*widget] {
	return func(_ context.Context, _ client.Client, w *widget) error { w.Status.Note = note; return nil }
}

// earlierBuild makes the status that of a build that did not record the digest of the generator.
func earlierBuild(o *operated) {
	recorded := revision.Of(o.obj).Processing()
	recorded.Generator = ""
	revision.Of(o.obj).SetProcessing(recorded)
}

func TestAGeneratorThatRendersTheSameStartsNoRevision(t *testing.T) {
	none := func(*operated) {}
	for name, test := range map[string]struct {
		options       ReconcilerOptions
		before, after version
		change        func(*operated)
		revision      int64 // 1 before
		another       bool  // component
		renders       int   // 1 for the comparison, 1 for the reconcile
	}{
		"the same":                          {before: version{digest: "1"}, after: version{digest: "1"}, change: none, revision: 1, renders: 1},
		"another digest":                    {before: version{digest: "1"}, after: version{digest: "2"}, change: none, revision: 1, renders: 2},
		"it had no digest":                  {after: version{digest: "2"}, change: none, revision: 1, renders: 2},
		"it has no digest any more":         {before: version{digest: "1"}, change: none, revision: 1, renders: 2},
		"it had no digest, in an old build": {after: version{digest: "2"}, change: earlierBuild, revision: 1, renders: 2},
		"the same, of an old build":         {before: version{digest: "1"}, after: version{digest: "1"}, change: earlierBuild, revision: 1, renders: 1},
		"no history":                        {options: ReconcilerOptions{Revisions: RevisionOptions{RevisionHistoryLimit: new(0)}}, before: version{digest: "1"}, after: version{digest: "2"}, change: none, revision: 1, renders: 2},
		"the history is not known": {before: version{digest: "1"}, after: version{digest: "2"}, change: func(o *operated) {
			o.obj.Status.History[0].Digest = ""
		}, revision: 1, renders: 2},
		"other objects":                    {before: version{digest: "1"}, after: version{digest: "2", text: "other"}, change: none, revision: 2, another: true, renders: 2},
		"other objects, without a history": {options: ReconcilerOptions{Revisions: RevisionOptions{RevisionHistoryLimit: new(0)}}, before: version{digest: "1"}, after: version{digest: "2", text: "other"}, change: none, revision: 2, another: true, renders: 2},
		"a part of the spec that is no parameter": {before: version{digest: "1", blind: true}, after: version{digest: "2", blind: true}, change: func(o *operated) {
			o.obj.Generation, o.obj.Spec.Timeout = 2, &types.Duration{Duration: time.Hour}
		}, revision: 1, another: true, renders: 2},
		"an annotation that makes other objects": {before: version{digest: "1"}, after: version{digest: "2"}, change: func(o *operated) {
			o.obj.Annotations = map[string]string{"a": "b"}
		}, revision: 2, another: true, renders: 2},
		"a parameter at the same time": {before: version{digest: "1"}, after: version{digest: "2"}, change: func(o *operated) {
			o.obj.Generation, o.obj.Spec.Size = 2, 3
		}, revision: 2, another: true, renders: 1},
		"the generator fails": {before: version{digest: "1"}, after: version{digest: "2", err: errors.New("no")}, change: none, revision: 2, another: true, renders: 2},
		"nothing was rendered before": {before: version{digest: "1"}, after: version{digest: "2"}, change: func(o *operated) {
			o.obj.Status.History[0].Digest = ""
			recorded := revision.Of(o.obj).Processing()
			recorded.Manifests = ""
			revision.Of(o.obj).SetProcessing(recorded)
		}, revision: 2, another: true, renders: 2},
		"a hook changes what is rendered": {before: version{digest: "1"}, after: version{digest: "2"}, change: func(o *operated) {
			o.code.hooks[preReconcile] = hooksOf(PreviewSafe(noteHook("hook")))
		}, revision: 2, another: true, renders: 2},
		"a hook changes nothing": {before: version{digest: "1"}, after: version{digest: "2"}, change: func(o *operated) {
			o.code.hooks[preReconcile] = hooksOf(PreviewSafe(noteHook("")))
		}, revision: 1, renders: 2},
		"a hook does not run for the comparison": {before: version{digest: "1"}, after: version{digest: "2"}, change: func(o *operated) {
			o.code.hooks[preReconcile] = hooksOf(noteHook("hook"))
		}, revision: 2, another: true, renders: 1},
		"a hook does not run for the comparison with an old build": {after: version{digest: "2"}, change: func(o *operated) {
			earlierBuild(o)
			o.code.hooks[preReconcile] = hooksOf(noteHook(""))
		}, revision: 1, renders: 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := operate(t, test.options)
			first, err := o.reconcile(test.before)
			check(t, err)
			test.change(o)
			request, err := o.reconcile(test.after)
			if !errors.Is(err, test.after.err) {
				t.Fatal(err)
			}
			if got := o.obj.Status.Revision; got != test.revision {
				t.Errorf("revision %d, want %d", got, test.revision)
			}
			if got := revision.Of(o.obj).Processing().Component; got != first.ComponentDigest != test.another {
				t.Errorf("the digest of the component was %s and is %s", first.ComponentDigest, got)
			}
			if err == nil && request.ComponentDigest != revision.Of(o.obj).Processing().Component {
				t.Errorf("the engine gets the digest %s", request.ComponentDigest)
			}
			if o.renders != test.renders {
				t.Errorf("rendered %d times, want %d", o.renders, test.renders)
			}
			if err != nil {
				return
			}
			// The comparison is made once, and the next process knows that.
			before := o.obj.Status.DeepCopy()
			if _, err := o.reconcile(test.after); err != nil || o.renders != 1 || o.obj.Status.Revision != before.Revision || o.obj.Status.ProcessingDigest != before.ProcessingDigest {
				t.Errorf("then: %v, rendered %d times, revision %d, digest %s, was %s", err, o.renders, o.obj.Status.Revision, o.obj.Status.ProcessingDigest, before.ProcessingDigest)
			}
			if got := o.obj.Status.History[0].Generator; got != revision.GeneratorID(test.after.digest) {
				t.Errorf("the history names the generator %q", got)
			}
		})
	}
}

// After the takeover everything is as if the generator had not changed.
func TestAComponentGoesOnWithTheDigestsOfTheEarlierGenerator(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	for _, v := range []version{{digest: "1"}, {digest: "2"}, {digest: "3"}, {digest: "1"}} {
		if _, err := o.reconcile(v); err != nil || o.obj.Status.Revision != 1 {
			t.Fatalf("%s: %v, revision %d", v.digest, err, o.obj.Status.Revision)
		}
	}
	component := revision.Of(o.obj).Processing().Component
	if _, err := o.reconcile(version{digest: "4"}); err != nil || revision.Of(o.obj).Processing().Component != component {
		t.Fatal(err, "another component")
	}
	o.obj.Spec.Size, o.obj.Generation = 7, 2
	if _, err := o.reconcile(version{digest: "4"}); err != nil || o.obj.Status.Revision != 2 || !strings.HasSuffix(o.obj.Status.ProcessingDigest, "/2/=4") {
		t.Errorf("after a change of the spec: %v, revision %d, digest %s", err, o.obj.Status.Revision, o.obj.Status.ProcessingDigest)
	}
	if _, err := o.reconcile(version{digest: "1"}); err != nil || o.obj.Status.Revision != 2 {
		t.Errorf("with the first generator: %v, revision %d", err, o.obj.Status.Revision)
	}
}

func TestTheTimeoutGoesOnWithAGeneratorThatRendersTheSame(t *testing.T) {
	for text, restarted := range map[string]bool{"": false, "other": true} {
		o := operate(t, ReconcilerOptions{})
		o.engine.outcome.Waiting = []report.Wait{{Key: report.Key{Kind: "ConfigMap", Name: "a"}}}
		_, _ = o.reconcile(version{digest: "1"})
		before := o.obj.Status.ProcessingSince.DeepCopy()
		o.now = func() time.Time { return before.Add(time.Minute) }
		_, _ = o.reconcile(version{digest: "2", text: text})
		if got := o.obj.Status.ProcessingSince; got.Equal(before) == restarted {
			t.Errorf("%q: it was started at %s, and now at %s", text, before, got)
		}
	}
}

func TestAnAnswerThatIsMissingStartsNoRevision(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	if _, err := o.reconcile(version{digest: "1"}); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []error{
		&url.Error{Op: "Get", URL: "https://api", Err: errors.New("connection refused")},
		apierrors.NewInternalError(errors.New("etcd")), apierrors.NewServiceUnavailable("later"), apierrors.NewTimeoutError("slow", 1),
	} {
		if _, err := o.reconcile(version{digest: "2", err: lost}); !errors.Is(err, lost) || o.obj.Status.Revision != 1 {
			t.Errorf("%v, revision %d", err, o.obj.Status.Revision)
		}
	}
}

func TestAPinnedComponentIsNotChangedByAnotherGenerator(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	reconcile := func(digest string, revision int64) {
		t.Helper()
		if _, err := o.reconcile(version{digest: digest}); err != nil || o.obj.Status.Revision != revision {
			t.Fatalf("%v, revision %d, want %d", err, o.obj.Status.Revision, revision)
		}
	}
	o.upTo(2)
	o.obj.Annotations = map[string]string{"test.corbel.run/rollback-to": "1"}
	reconcile("1", 3)
	component := revision.Of(o.obj).Processing().Component
	for range 2 {
		reconcile("2", 3)
		if got := revision.Of(o.obj).Processing().Component; got != component {
			t.Errorf("the digest of the component was %s and is %s", component, got)
		}
	}
	o.obj.Annotations = nil
	reconcile("2", 4)
}

func TestAComponentStaysRolledBackIfTheFailedRevisionWouldBeTheSame(t *testing.T) {
	for text, number := range map[string]int64{"": 3, "other": 4} {
		o := operate(t, ReconcilerOptions{Revisions: RevisionOptions{RollbackOnFailure: true}})
		o.upTo(2)
		status := o.obj.GetStatus()
		status.History[0].ReadyAt, status.History[0].Result, status.AppliedGeneration = nil, v1alpha1.RevisionFailed, 1
		if !revision.Of(o.obj).RollBack("it failed") {
			t.Fatal("it is not rolled back")
		}
		if _, err := o.reconcile(version{digest: "1"}); err != nil || status.Revision != 3 || status.AppliedGeneration != 1 {
			t.Fatalf("%v, revision %d, applied generation %d", err, status.Revision, status.AppliedGeneration)
		}
		component := revision.Of(o.obj).Processing().Component
		for range 2 {
			if _, err := o.reconcile(version{digest: "2", text: text}); err != nil || status.Revision != number {
				t.Errorf("%q: %v, revision %d, want %d", text, err, status.Revision, number)
			}
		}
		if rolledBack := status.Rollback != nil && revision.Of(o.obj).Processing().Component == component; rolledBack != (text == "") {
			t.Errorf("%q: rolled back %+v", text, status.Rollback)
		}
	}
}

func TestAFailedRevisionStaysIfTheOneBeforeIsNotKept(t *testing.T) {
	o := operate(t, ReconcilerOptions{Revisions: RevisionOptions{RollbackOnFailure: true}})
	o.upTo(2)
	status := o.obj.GetStatus()
	status.History[0].ReadyAt, status.History[0].Result = nil, v1alpha1.RevisionFailed
	if !revision.Of(o.obj).RollBack("it failed") {
		t.Fatal("it is not rolled back")
	}
	o.revisions.Renderer.Revisions = historyIn(fake.NewClientBuilder().Build())
	_, err := o.reconcile(version{digest: "1"})
	checkMistakes(t, err, "it cannot be rolled back after the failure of revision 2")
	for range 2 {
		request, err := o.reconcile(version{digest: "1"})
		if objects, _ := json.Marshal(request.Objects); err != nil || status.Rollback != nil || status.Revision != 2 || !strings.Contains(string(objects), `"size":"1"`) {
			t.Errorf("%v, %+v, revision %d, objects %s", err, status.Rollback, status.Revision, objects)
		}
	}
}

func TestARollbackAppliesTheManifestsOfAnEarlierRevision(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	o.engine.outcome = reconciler.Outcome{Total: 1, Settled: 1}
	const pinned = "pinned to revision 1 by annotation test.corbel.run/rollback-to"
	for _, step := range []struct {
		what, rollbackTo string
		size             int    // of the spec
		applied, history string // the size, and the revisions
	}{
		{"an installation", "", 1, "1", "1 Ready 0"},
		{"a change", "", 2, "2", "2 Ready 0, 1 Ready 0"},
		{"a rollback", "1", 2, "1", "3 Ready 1, 2 Ready 0, 1 Ready 0"},
		{"another change of the spec", "1", 3, "1", "3 Ready 1, 2 Ready 0, 1 Ready 0"},
		{"the end of the rollback", "", 3, "3", "4 Ready 0, 3 Ready 1, 2 Ready 0, 1 Ready 0"},
	} {
		if step.size != o.obj.Spec.Size {
			o.obj.Generation, o.obj.Spec.Size = o.obj.Generation+1, step.size
		}
		o.obj.Annotations = map[string]string{"test.corbel.run/rollback-to": step.rollbackTo}
		request, err := o.reconcile(version{digest: "1"})
		check(t, err)
		o.report(t.Context(), o.obj, session.Outcome{Phase: session.PhaseApply})
		if got, _, _ := unstructured.NestedString(request.Objects[0].(*unstructured.Unstructured).Object, "data", "size"); got != step.applied {
			t.Errorf("%s: applied is size %s, want %s", step.what, got, step.applied)
		}
		var history []string
		for _, entry := range o.obj.Status.History {
			history = append(history, fmt.Sprint(entry.Revision, " ", entry.Result, " ", entry.RollbackTo))
		}
		if diff := cmp.Diff(step.history, strings.Join(history, ", ")); diff != "" {
			t.Errorf("%s: history (-want +got):\n%s", step.what, diff)
		}
		_, _, message := o.obj.Status.GetState()
		if strings.Contains(message, pinned) != (step.rollbackTo != "") || o.obj.Status.AppliedGeneration != o.obj.Generation {
			t.Errorf("%s: applied generation %d of %d, %s", step.what, o.obj.Status.AppliedGeneration, o.obj.Generation, message)
		}
	}
}

// Data goes with what is irreplaceable, and content of instances with what an earlier definition lacks.
func TestARollbackRetainsWhatIsIrreplaceableAndDowngradesNoDefinition(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	o.revisions.Renderer.Generator = generatorFunc(func(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
		size := fmt.Sprint(parameters.ToUnstructured()["size"])
		return append(oneConfigMap(size), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "things.example.com"}, "spec": map[string]any{"size": size},
		}}), nil
	})
	reconcile := func() {
		t.Helper()
		_, err := o.applier.createOrUpdate(t.Context(), o.obj, noCommit)
		check(t, err)
	}
	for generation := range int64(2) {
		o.obj.Generation, o.obj.Spec.Size = generation+1, int(generation)+1
		reconcile()
	}
	o.obj.Annotations = map[string]string{"test.corbel.run/rollback-to": "1"}
	o.obj.Status.Inventory = v1alpha1.Inventory{Format: 1, Items: []v1alpha1.InventoryItem{
		{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}, {Version: "v1", Kind: "Namespace", Name: "extra"},
		{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "b"},
	}}
	retained := []report.Key{{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}, {Kind: "Namespace", Name: "extra"}}
	o.engine.outcome.Retained = retained
	reconcile()
	request := o.engine.applied[len(o.engine.applied)-1]
	if diff := cmp.Diff(retained, request.Retain); diff != "" || len(request.Objects) != 2 || !request.Stored || o.obj.Status.Revision != 3 {
		t.Fatalf("revision %d, %d objects; retained are (-want +got):\n%s", o.obj.Status.Revision, len(request.Objects), diff)
	}
	size, _, _ := unstructured.NestedString(request.Objects[1].(*unstructured.Unstructured).Object, "spec", "size")
	if valueOf(request.Objects) != "1" || size != "2" {
		t.Errorf("the ConfigMap is that of revision %s, and the definition that of revision %s", valueOf(request.Objects), size)
	}
	o.report(t.Context(), o.obj, session.Outcome{Phase: session.PhaseApply})
	_, _, message := o.obj.Status.GetState()
	checkMistakes(t, errors.New(message), "kept of later revisions: |"+
		"CustomResourceDefinition things.example.com|PersistentVolumeClaim shop/data|Namespace extra")
}

func TestMistakesInARollbackStallAndListWhatIsKept(t *testing.T) {
	o, local := operate(t, ReconcilerOptions{Revisions: RevisionOptions{RevisionHistoryLimit: new(2)}}), fake.NewClientBuilder().Build()
	o.revisions.Renderer.Revisions = historyIn(local)
	o.upTo(3)
	applied := len(o.engine.applied)
	for _, step := range []struct {
		to, says string
		damaged  bool
	}{
		{to: "1", says: "revision 1 cannot be applied again, because its manifests are not kept; those of revision 3, 2 are"},
		{to: "last", says: `"last" must be the number of an earlier revision`},
		{to: "2", says: "it does not open", damaged: true},
	} {
		if step.damaged {
			list := &corev1.SecretList{}
			check(t, local.List(t.Context(), list))
			list.Items[0].Data["history"][40] ^= 1
			check(t, local.Update(t.Context(), &list.Items[0]))
		}
		o.obj.Annotations = map[string]string{"test.corbel.run/rollback-to": step.to}
		request, err := o.reconcile(version{digest: "1"})
		checkMistakes(t, err, step.says)
		if v := verdict.Evaluate(verdict.Facts{Err: err}); !v.Stalled || v.Reason != vocabulary.ReasonSpecInvalid || o.obj.Status.Revision != 3 {
			t.Errorf("%s: revision %d, %s: %s", step.to, o.obj.Status.Revision, v.Reason, v.Message)
		}
		if len(o.engine.applied) > applied && !request.RepairOnly {
			t.Errorf("%s: the engine applies %+v", step.to, request)
		}
	}
	o.obj.Annotations = nil
	if _, err := o.reconcile(version{digest: "1"}); err != nil || o.obj.Status.Revision != 3 {
		t.Errorf("%v, revision %d", err, o.obj.Status.Revision)
	}
}

func TestAPinnedComponentIsDeletedAlthoughItsHistoryIsLost(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	o.upTo(2)
	o.obj.Annotations = map[string]string{"test.corbel.run/rollback-to": "1"}
	if _, err := o.reconcile(version{digest: "1"}); err != nil || o.obj.Status.Revision != 3 {
		t.Fatalf("%v, revision %d", err, o.obj.Status.Revision)
	}
	o.revisions.Renderer.Revisions = historyIn(fake.NewClientBuilder().Build())
	o.renders, deleted(o.obj).Status.Inventory = 0, someInventory
	o.obj.Status.Inventory.DeleteHooks = true
	if res, err := o.deletion.delete(t.Context(), o.obj, noCommit); res != result.Success || err != nil || len(o.engine.deleted) != 1 || o.renders == 0 {
		t.Errorf("%v, %v; %d deletions, rendered %d times", res, err, len(o.engine.deleted), o.renders)
	}
}

func TestARequestForAReconcileIsFollowedWithoutANewRevision(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	_, err := o.reconcile(version{digest: "1", blind: true})
	check(t, err)
	before := o.obj.Status.DeepCopy()
	for _, request := range []map[string]string{
		{"test.corbel.run/reconcile-at": "2026-01-01T00:00:00Z"},
		{"reconcile.fluxcd.io/requestedAt": "2026-01-01T23:00:00.123-05:00"},
		{"test.corbel.run/reconcile-at": "2026-01-03T00:00:00Z"},
	} {
		o.obj.Annotations, o.renders = request, 0
		_, err := o.applier.createOrUpdate(t.Context(), o.obj, noCommit)
		check(t, err)
		after := o.obj.Status.DeepCopy()
		for _, value := range request {
			if after.LastHandledReconcileAt != value || o.renders == 0 {
				t.Errorf("%v: handled is %q, rendered %d times", request, after.LastHandledReconcileAt, o.renders)
			}
		}
		if after.LastHandledReconcileAt = ""; !cmp.Equal(before, after) {
			t.Errorf("%v: the status (-was +is):\n%s", request, cmp.Diff(before, after))
		}
	}
}

func TestAForgedRollbackIsDropped(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	if _, err := o.reconcile(version{digest: "1"}); err != nil {
		t.Fatal(err)
	}
	digest := revision.Of(o.obj).Processing().Revision
	for _, forged := range []v1alpha1.Rollback{{Digest: digest}, {From: 1, To: 1, Digest: digest}, {From: 1, To: 2, Digest: digest}, {From: 2, To: -1, Digest: digest}} {
		o.obj.Status.Rollback = &forged
		if _, err := o.reconcile(version{digest: "1"}); err != nil || o.obj.Status.Rollback != nil || o.obj.Status.Revision != 1 {
			t.Errorf("%+v: %v, revision %d", forged, err, o.obj.Status.Revision)
		}
	}
}

func TestApprovalIsAskedOnlyForOtherObjects(t *testing.T) {
	for name, test := range map[string]struct {
		text       string
		hooks      []HookFunc[*widget]
		annotation string
		asked      bool
		revision   int64 // 1 by default
	}{
		"the same":      {},
		"other objects": {text: "other", asked: true},
		"a hook that does not run before the approval": {hooks: []HookFunc[*widget]{noteHook("hook")}, asked: true},
		"the annotation says that none is required":    {text: "other", annotation: "false", revision: 2},
	} {
		o := operate(t, ReconcilerOptions{})
		if _, err := o.reconcile(version{digest: "1"}); err != nil {
			t.Fatal(err)
		}
		o.settings.requireApproval, o.code.hooks[preReconcile] = true, hooksOf(test.hooks...)
		if test.annotation != "" {
			o.obj.Annotations = map[string]string{"test.corbel.run/require-approval": test.annotation}
		}
		_, err := o.reconcile(version{digest: "2", text: test.text})
		// The objects of a stored set change no type that components share: the operator upgrades it without approval.
		if last := o.engine.applied[len(o.engine.applied)-1]; last.Stored != test.asked {
			t.Errorf("%s: the engine gets a stored set: %t", name, last.Stored)
		}
		got, revision := o.obj.Status.Approval != nil, o.obj.Status.Revision
		if got != test.asked || (err != nil) != test.asked || revision != max(test.revision, 1) || o.obj.Status.Note != "" {
			t.Errorf("%s: asked %t, %v, revision %d, note %q", name, got, err, revision, o.obj.Status.Note)
		}
	}
}

func TestAWrongValueOfAnAnnotationIsAMistakeInTheComponent(t *testing.T) {
	for annotation, want := range map[string]string{"require-approval": `"maybe" must be "true" or "false"`, "allow-empty": `"maybe" must be "true" or "false"`, "rollout": `"maybe" must be "pin", "promote" or "ignore"`} {
		o := operate(t, ReconcilerOptions{})
		o.obj.Annotations = map[string]string{"test.corbel.run/" + annotation: "maybe"}
		_, err := o.reconcile(version{digest: "1"})
		checkMistakes(t, err, want)
		if verdict.Evaluate(verdict.Facts{Err: err}).Reason != vocabulary.ReasonSpecInvalid {
			t.Errorf("the error %v is no mistake in the component", err)
		}
	}
}

func TestARolloutTakesNoNoticeOfAComponentThatStaysTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		text       string
		annotation string
		edited     bool
		unlimited  bool // without the option
		hooks      []HookFunc[*widget]
		ready      bool
		held       bool
		want       fleet.State // empty: it has started
	}{
		"the same":                     {ready: true, want: fleet.Done},
		"the same, and failed before":  {want: fleet.Done},
		"other objects wait":           {text: "other", ready: true, held: true, want: fleet.Waiting},
		"other objects, failed before": {text: "other", held: true, want: fleet.Waiting},
		"a hook waits":                 {hooks: []HookFunc[*widget]{noteHook("hook")}, ready: true, held: true, want: fleet.Waiting},
		"other objects are pinned":     {text: "other", annotation: "pin", ready: true, held: true, want: fleet.Pinned},
		"pinned without the option":    {text: "other", annotation: "pin", unlimited: true, ready: true, held: true, want: fleet.Pinned},
		"an edit of a pinned one":      {text: "other", annotation: "pin", unlimited: true, edited: true, ready: true},
		"other objects are promoted":   {text: "other", annotation: "promote", ready: true},
		"an edit":                      {text: "other", edited: true, ready: true},
	} {
		o := operate(t, ReconcilerOptions{})
		o.upTo(2) // a revision that was ready, and the one that the test is about
		if current := revision.Of(o.obj).Current(); !test.ready {
			current.ReadyAt, current.Result = nil, v1alpha1.RevisionFailed
			o.engine.outcome.Waiting = []report.Wait{{Key: report.Key{Kind: "ConfigMap", Name: "a"}}}
		}
		o.code.hooks[preReconcile] = hooksOf(test.hooks...)
		if test.edited {
			o.obj.Generation, o.obj.Spec.Size = 3, 3
		}
		if test.annotation != "" {
			o.obj.Annotations = map[string]string{"test.corbel.run/rollout": test.annotation}
		}
		o.rollOut(version{digest: "2"})
		if test.unlimited {
			o.settings.rollout = nil
			o.fleet = newFleet(o.steps, o.local, nil)
		}
		other := newWidget()
		other.Name, other.Status.Revision, other.Status.AppliedGeneration = "other", 2, 1
		other.Status.History = []v1alpha1.RevisionStatus{
			{Revision: 2, Generator: revision.GeneratorID("2"), Result: v1alpha1.RevisionProcessing}, {Revision: 1, Result: v1alpha1.RevisionReady},
		}
		o.fleet.Report(t.Context(), other, false)
		if _, err := o.reconcile(version{digest: "2", text: test.text}); (err == nil) != test.ready {
			t.Fatal(name, err)
		}
		turn := o.fleet.Turn(client.ObjectKeyFromObject(o.obj))
		if held := turn != ""; held != test.held || o.obj.Status.Revision == 2 != (test.want != "") {
			t.Errorf("%s: held %t, revision %d", name, held, o.obj.Status.Revision)
		}
		if pinned := turn == "the next version is not applied, because the annotation test.corbel.run/rollout is pin"; pinned != (test.want == fleet.Pinned) {
			t.Errorf("%s: the turn is %q", name, turn)
		}
		if test.want == "" || test.unlimited {
			continue
		}
		if got := o.fleet.Member(o.obj, revision.GeneratorID("2"), false); got.State != test.want {
			t.Errorf("%s: %s, want %s", name, got.State, test.want)
		}
	}
}

// The digests of an earlier generator are kept although an operator lost its key.
func TestAnotherKeyAndAnotherGenerator(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	for _, digest := range []string{"1", "2"} {
		if _, err := o.reconcile(version{digest: digest}); err != nil {
			t.Fatal(err)
		}
	}
	key, _ := o.digestKey(t.Context())
	o.obj.Status.Inventory.Operator = &v1alpha1.InventoryOperator{Key: hash.Hasher{Key: key}.ID()}
	o.digestKey, o.revisions.DigestKey = fixedKey("another key").Get, fixedKey("another key").Get
	if _, err := o.reconcile(version{digest: "2"}); err != nil || o.obj.Status.Revision != 1 {
		t.Errorf("%v, revision %d", err, o.obj.Status.Revision)
	}
}

// The first of them was never written into the status.
func TestTwoRevisionsOfOneNumberHaveOtherRandomValues(t *testing.T) {
	o := operate(t, ReconcilerOptions{})
	o.revisions.Renderer.Generator = drawn(strings.Split("1 2 3 4 5 6 7 8 9", " ")...)
	var values []string
	for size := range 2 {
		o.obj, o.memory = withSpec(widgetSpec{Size: size}), newMemory()
		_, err := o.applier.createOrUpdate(t.Context(), o.obj, noCommit)
		check(t, err)
		values = append(values, valueOf(o.engine.applied[size].Objects))
	}
	if o.obj.Status.Revision != 1 || values[0] == values[1] {
		t.Errorf("revision %d, values %q", o.obj.Status.Revision, values)
	}
}

// digested is a generator with a digest.
type digested struct{ manifests.GeneratorFunc }

func (digested) Digest() string { return "1" }

func TestTheBuildIsTheDigestOfGoCode(t *testing.T) {
	code := manifests.GeneratorFunc(nothing)
	own := manifests.WithObjectTransformer(manifests.ObjectTransformerFunc(func(_, _ string, objects []client.Object) ([]client.Object, error) { return objects, nil }))
	for name, test := range map[string]struct {
		generator manifests.Generator
		counts    bool
	}{
		"code":                      {code, true},
		"a transformer":             {manifests.Transform(digested{nothing}, own), true},
		"a generator with a digest": {digested{nothing}, false},
	} {
		sums := map[string]bool{}
		for _, build := range []string{"", "1", "2"} {
			r := NewReconciler[*widget]("test.corbel.run", test.generator, ReconcilerOptions{Revisions: RevisionOptions{BuildDigest: build, Rollout: &Rollout{MaxUnavailable: intstr.FromInt32(1)}}})
			for _, mistake := range r.wiring() {
				if mistake != nil && (name != "code" || build != "" || !errors.Is(mistake, errNoDigest)) {
					t.Errorf("%s: %v", name, mistake)
				}
			}
			sums[renders.Digest(r.generator)] = true
		}
		if counts := len(sums) == 3; counts != test.counts || !counts && len(sums) != 1 {
			t.Errorf("%s: %v", name, sums)
		}
	}
}

// A status may be written at any moment of a reconcile: before the objects, after each record, and when the process stops.
func TestNoStatusSaysReadyOfARevisionThatWasNotReady(t *testing.T) {
	annotate := func(annotation, value string) func(*operated) {
		return func(o *operated) {
			o.obj.Annotations = map[string]string{"test.corbel.run/" + annotation: value}
		}
	}
	one, two := version{digest: "1", blind: true}, version{digest: "2", text: "other", blind: true}
	for name, test := range map[string]struct {
		first  []version // lead to the revision that is ready; without any it is that of version one
		change func(*operated)
		next   version
		writes int // before the reconcile ends
	}{
		"another version of the operator": {change: func(*operated) {}, next: two, writes: 1},
		"a turn of a roll-out": {change: func(o *operated) {
			annotate(vocabulary.AnnotationRollout, "promote")(o)
			o.rollOut(two)
		}, next: two, writes: 2},
		"an approval that was there before": {change: func(o *operated) {
			o.settings.requireApproval = true
			asked := *o
			asked.obj = o.obj.DeepCopyObject().(*widget)
			if _, err := asked.reconcile(two); asked.obj.Status.Approval == nil {
				o.Fatalf("no approval is asked for: %v", err)
			}
			annotate(vocabulary.AnnotationApprove, asked.obj.Status.Approval.Hash)(o)
		}, next: two, writes: 2},
		"a change of the spec":  {change: func(o *operated) { o.obj.Generation, o.obj.Spec.Size = 2, 3 }, next: one, writes: 1},
		"a rollback":            {first: []version{one, two}, change: annotate(vocabulary.AnnotationRollbackTo, "1"), next: two, writes: 1},
		"the end of a rollback": {first: []version{one, two, one}, change: func(o *operated) { o.obj.Annotations = nil }, next: two, writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := operate(t, ReconcilerOptions{})
			o.engine.record, o.engine.outcome = true, reconciler.Outcome{Inventory: someInventory, Total: 1, Settled: 1}
			if test.first == nil {
				test.first = []version{one}
			}
			for i, v := range test.first {
				if i == 2 {
					annotate(vocabulary.AnnotationRollbackTo, "1")(o)
				}
				if _, err := o.reconcile(v); err != nil {
					t.Fatal(err)
				}
				o.report(t.Context(), o.obj, session.Outcome{Phase: session.PhaseApply})
			}
			before := o.obj.Status.Revision
			if !o.obj.Status.IsReady() || before != int64(len(test.first)) {
				t.Fatalf("revision %d is %s", before, o.obj.Status.State)
			}
			test.change(o)
			writes := 0
			check := func(when string) {
				status := o.obj.GetStatus()
				if _, _, message := status.GetState(); status.Revision != before+1 || status.IsReady() || conditions.IsTrue(conditionsOf(o.obj), v1alpha1.ConditionReady) {
					t.Errorf("%s: revision %d is %s: %s", when, status.Revision, status.State, message)
				}
			}
			o.events.lines, o.engine.outcome.Steps = nil, map[string]int{"create": 2}
			o.engine.outcome.Settled, o.engine.outcome.Waiting = 0, []report.Wait{waitFor("/ConfigMap shop/a", "NotReady", "not yet")}
			o.revisions.Renderer.Generator, o.memory = test.next, newMemory()
			_, err := o.applier.createOrUpdate(t.Context(), o.obj, func(context.Context) error {
				writes++
				check("before the end")
				return nil
			})
			check("when the process stops")
			o.report(t.Context(), o.obj, session.Outcome{Phase: session.PhaseApply, Err: err})
			check("at the end")
			if !slices.Contains(o.events.lines, "Normal|Applied|Apply|created 2 objects") {
				t.Errorf("no event says at once what was done: %q", o.events.lines)
			}
			if writes != test.writes {
				t.Errorf("%d writes before the end, want %d", writes, test.writes)
			}
		})
	}
}

func TestAReleaseThatCannotBeTakenOverIsNamed(t *testing.T) {
	chart, err := helm.New(fstest.MapFS{
		"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: store\nversion: 1.0.0\n")},
		"templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
	}, ".", helm.Options{})
	check(t, err)
	for name, test := range map[string]struct {
		reference string // shop/main/2 by default
		chart     string // of the release; store by default
		forbidden bool   // the option is not set
		change    func(*widget)
		says      string
	}{
		"missing":              {reference: "shop/main/3", says: "Helm release shop/main has no revision 3: there is neither a Secret nor a ConfigMap sh.helm.release.v1.main.v3"},
		"of another namespace": {reference: "other/main/2", says: "Helm release other/main is not in the namespace of the component"},
		"of another name":      {reference: "shop/other/2", says: "Helm release shop/other cannot be adopted: the component is deployed as shop/main"},
		"of another chart":     {chart: "shop", says: "it is of the chart shop, and the operator renders store"},
		"by an operator that takes over none": {forbidden: true,
			says: "adopt-helm-release: this operator takes over no Helm releases: its author allows it by the option AdoptHelmReleases"},
		"under the policy never": {change: func(w *widget) { w.Spec.AdoptionPolicy = v1alpha1.AdoptionPolicyNever },
			says: "Helm release shop/main cannot be adopted: the adoption policy is Never"},
		"no reference": {reference: "main", says: `adopt-helm-release: "main" is not namespace, name and revision of a Helm release`},
		// The values that were drawn for its first revision would replace those of the release.
		"by a component that was tried before": {change: func(w *widget) { w.Status.Revision = 1 }, says: "only a new component can take over a release"},
		"by an installed component":            {change: func(w *widget) { w.Status.Revision, w.Status.AppliedGeneration = 1, 1 }, says: "only a new one can take over a release"},
		// A user who may write the status alone takes over nothing.
		"that the status alone names": {change: func(w *widget) {
			w.Annotations, w.Status.Revision, w.Status.Inventory = nil, 1, someInventory
			w.Status.AdoptedRelease = &v1alpha1.AdoptedRelease{Namespace: "shop", Name: "main", Revision: 2}
		}, says: "adopt-helm-release: it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			engine := &fakeEngine{}
			h, _ := testHandler(t, engine, ReconcilerOptions{Users: UserOptions{AdoptHelmReleases: !test.forbidden}})
			h.revisions.Renderer.Generator = chart
			if test.chart == "" {
				test.chart = "store"
			}
			record := fmt.Sprintf(`{"name": "main", "namespace": "shop", "version": 2, "info": {"status": "deployed"}, "chart": {"metadata": {"name": %q}}}`, test.chart)
			h.targets.(*fakeTargets).target.Client = fake.NewFakeClient(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sh.helm.release.v1.main.v2", Labels: map[string]string{"owner": "helm", "name": "main"}},
				Type:       "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString([]byte(record)))},
			})
			obj := newWidget()
			obj.Annotations = map[string]string{"test.corbel.run/adopt-helm-release": "shop/main/2"}
			if test.reference != "" {
				obj.Annotations["test.corbel.run/adopt-helm-release"] = test.reference
			}
			if test.change != nil {
				test.change(obj)
			}
			named := obj.Status.AdoptedRelease
			reconcileOnce(t, h, obj)
			if obj.Status.AdoptedRelease != named {
				t.Errorf("the status names the release %+v", obj.Status.AdoptedRelease)
			}
			if _, reason, message := obj.GetStatus().GetState(); reason != vocabulary.ReasonSpecInvalid || !strings.Contains(message, test.says) || len(engine.applied) > 0 {
				t.Errorf("%s: %s; want %s; %d calls of the engine", reason, message, test.says, len(engine.applied))
			}
		})
	}
}
