// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// ownsRecorded returns a bench without a server, and the recorder of its requests. It has
// no client: a test checks what the engine sends.
func ownsRecorded(t *testing.T, options reconciler.ReconcilerOptions) (*bench, *wire.Recorder) {
	t.Helper()
	recorder := wire.NewRecorder(namespaceOf("shop"))
	target := check.Must(cluster.New(recorder.Config(), cluster.Options{}))(t)
	t.Cleanup(target.Close)
	engine := check.Must(reconciler.NewReconciler(engineName, reconciler.Target{Target: target}, options))(t)
	return &bench{t: t, engine: engine, namespace: "shop"}, recorder
}

// mustRecord returns the inventory of a request before anything is created.
func (b *bench) mustRecord(request reconciler.ApplyRequest) v1alpha1.Inventory {
	b.t.Helper()
	var recorded v1alpha1.Inventory
	stop := errors.New("nothing is created")
	request.Record = func(_ context.Context, inventory v1alpha1.Inventory) error {
		recorded = inventory
		return stop
	}
	if _, err := b.engine.Apply(b.t.Context(), request); !errors.Is(err, stop) {
		b.t.Fatalf("record: %v", err)
	}
	return recorded
}

func TestTheRecordIsDurableBeforeTheFirstRequestThatWrites(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	request := b.request(config("a", "1"), config("b", "1"))
	before := -1
	request.Record = func(ctx context.Context, inventory v1alpha1.Inventory) error {
		if before < 0 {
			before = len(recorder.Writes())
			if len(inventory.Items) != 2 {
				t.Errorf("the record has %d items, want 2", len(inventory.Items))
			}
		}
		return b.record(ctx, inventory)
	}
	if outcome, err := b.engine.Apply(t.Context(), request); err != nil || !outcome.Done() || before != 0 || len(recorder.Writes()) != 2 {
		t.Errorf("%v, %d writes before the record, %v in all", err, before, recorder.Writes())
	}

	b, recorder = ownsRecorded(t, reconciler.ReconcilerOptions{})
	request, broken := b.request(config("a", "1")), errors.New("the status cannot be written")
	request.Record = func(context.Context, v1alpha1.Inventory) error { return broken }
	if _, err := b.engine.Apply(t.Context(), request); !errors.Is(err, broken) || len(recorder.Writes()) > 0 {
		t.Errorf("with a record that fails: %v, sent %v", err, recorder.Writes())
	}
	request.Record = nil
	if _, err := b.engine.Apply(t.Context(), request); err == nil || len(recorder.Writes()) > 0 {
		t.Errorf("without a way to record: %v, sent %v", err, recorder.Writes())
	}
}

func TestNothingIsDeletedForAnEmptySetUnlessThatIsAllowed(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"))
	_, err := b.apply()
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid || len(recorder.Sent(http.MethodDelete)) > 0 {
		t.Fatalf("got %v, sent %v", err, recorder.Writes())
	}
	check.Contains(t, err.Error(), "1 objects", "ConfigMap shop/a", engineName+`/allow-empty: "true"`, "Release shop/main")
	request := b.request()
	request.AllowEmpty = true
	if outcome, err := b.engine.Apply(t.Context(), request); err != nil || !outcome.Done() || len(recorder.Sent(http.MethodDelete)) != 1 {
		t.Errorf("allowed: %v, sent %v", err, recorder.Writes())
	}
	b.inventory = v1alpha1.Inventory{}
	b.mustApply() // nothing is needed to apply nothing to nothing
}

func TestNothingIsCreatedIfLeadershipIsNotConfirmed(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{Parallelism: 1})
	request := b.request(config("a", "1"), config("b", "1"))
	request.Inventory = b.mustRecord(request)
	refusal, asked := errors.New("another process leads"), 0
	request.Confirm = func(context.Context) error { asked++; return refusal }
	outcome, err := b.engine.Apply(t.Context(), request)
	if _, superseded := errors.AsType[*reconciler.SupersededError](err); !superseded || !errors.Is(err, refusal) || asked != 1 {
		t.Errorf("got %v, asked %d times", err, asked)
	}
	if len(recorder.Writes()) > 0 || len(outcome.Inventory.Items) != 2 {
		t.Errorf("sent %v, recorded %v", recorder.Writes(), outcome.Inventory.Items)
	}
}

// The namespace that the owner lives in, and an object that it needs, are orphaned.
func TestWhatTheOwnerStandsOnIsNeverDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		objects   []client.Object
		protected []report.Key
	}{
		"its namespace":           {[]client.Object{namespaceOf("shop"), config("other", "1")}, nil},
		"an object that it needs": {[]client.Object{config("key", "1"), config("other", "1")}, []report.Key{{Kind: "ConfigMap", Namespace: "shop", Name: "key"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
			b.mustApply(tc.objects...)
			outcome, err := b.engine.Delete(t.Context(), reconciler.DeleteRequest{Owner: b.owner(), Inventory: b.inventory, Record: b.record, Protected: tc.protected})
			if err != nil || !outcome.Done() {
				t.Errorf("delete: %v, waiting for %v", err, outcome.Waiting)
			}
			if sent := recorder.Sent(http.MethodDelete); len(sent) != 1 || !strings.HasSuffix(sent[0].Path, "/other") {
				t.Errorf("sent %v", sent)
			}

			if tc.protected == nil {
				return // a namespace stays recorded as long as an object lives in it
			}
			b, recorder = ownsRecorded(t, reconciler.ReconcilerOptions{})
			b.mustApply(append(slices.Clone(tc.objects), config("stays", "1"))...)
			request := b.request(config("stays", "1"))
			request.Protected = tc.protected
			if outcome, err = b.engine.Apply(t.Context(), request); err != nil || !outcome.Done() || len(outcome.Inventory.Items) != 1 {
				t.Errorf("prune: %v, waiting for %v, recorded %v", err, outcome.Waiting, outcome.Inventory.Items)
			}
			if sent := recorder.Sent(http.MethodDelete); len(sent) != 1 || !strings.HasSuffix(sent[0].Path, "/other") {
				t.Errorf("pruned %v", sent)
			}
			orphaned := recorder.Sent(http.MethodPatch)
			if len(orphaned) != 1 || !strings.HasSuffix(orphaned[0].Path, "/"+tc.objects[0].GetName()) {
				t.Fatalf("orphaned %v", orphaned)
			}
			if label, found, _ := unstructured.NestedFieldNoCopy(orphaned[0].Body, "metadata", "labels", engineName+"/owner-id"); !found || label != nil {
				t.Errorf("the label of the owner is %v", label)
			}
		})
	}
}

// An object with the label and annotation of another owner is neither changed nor deleted,
// whatever the record says.
func TestARecordProvesNothingAgainstTheOwnershipMetadataOfAnother(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"))
	theirs := config("a", "1")
	theirs.SetNamespace("shop")
	theirs.SetLabels(map[string]string{engineName + "/owner-id": "another"})
	theirs.SetAnnotations(map[string]string{engineName + "/owner": "example.com/Release/shop/another/2"})
	recorder.Put(theirs)
	before := len(recorder.Writes())
	if _, err := b.apply(config("a", "2")); err == nil {
		t.Error("the object of another was applied")
	}
	if outcome, err := b.delete(); err != nil || !outcome.Done() || len(recorder.Writes()) > before {
		t.Errorf("delete: %v, sent %v", err, recorder.Writes()[before:])
	}
}

// The ownerReferences of others stay, and an event names the owner.
func TestAnAdoptionNamesTheFormerOwner(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	expect := func(want string) *unstructured.Unstructured {
		t.Helper()
		if notes := b.mustApply(config("a", "1", "adoption-policy", "always")).Notes; len(notes) != 1 || notes[0].Message != want {
			t.Errorf("notes %v, want %q", notes, want)
		}
		sent := recorder.Sent(http.MethodPut)
		return &unstructured.Unstructured{Object: sent[len(sent)-1].Body}
	}
	theirs := config("a", "theirs")
	theirs.SetNamespace("shop")
	references := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "web", UID: "5", Controller: new(true)}}
	theirs.SetOwnerReferences(references)
	recorder.Put(theirs)
	adopted := expect("adopted: it belonged to its controller ConfigMap web")
	check.EqualNamed(t, "references", references, adopted.GetOwnerReferences())
	labels := adopted.GetLabels()
	labels["kustomize.toolkit.fluxcd.io/name"] = "web"
	adopted.SetLabels(labels)
	recorder.Put(adopted)
	again := expect("adopted again: Flux Kustomization web had put its label or annotation on it")
	if label, left := again.GetLabels()["kustomize.toolkit.fluxcd.io/name"]; left {
		t.Errorf("the label of the former owner is sent again: %q", label)
	}
}

// A record without seals is sealed again without a write. A copied or invented seal proves nothing.
func TestAnObjectWithoutOwnershipMetadataIsOursByTheSealOfItsRecord(t *testing.T) {
	b, recorder := ownsRecorded(t, keyed(reconciler.ReconcilerOptions{}))
	names := []string{"copied", "invented", "sealed", "unsealed"}
	var objects []client.Object
	for _, name := range names {
		objects = append(objects, config(name, "1"))
	}
	b.mustApply(objects...)
	for i := range b.inventory.Items {
		b.inventory.Items[i].Seal = ""
	}
	if outcome := b.mustApply(objects...); len(outcome.Steps) > 0 {
		t.Errorf("steps at rest: %v", outcome.Steps)
	}
	for _, name := range names {
		stripped := config(name, "1")
		stripped.SetNamespace("shop")
		recorder.Put(stripped)
	}
	items := b.inventory.Items
	items[0].Seal, items[1].Seal, items[3].Seal = items[2].Seal, "AAAAAAAAAAAAAAAAAAAAAA", ""
	another := *b
	another.name, another.inventory.Items = "another", slices.Clone(items)
	if outcome, err := another.delete(); err != nil || !outcome.Done() || len(recorder.Sent(http.MethodDelete)) > 0 {
		t.Errorf("the record of another owner: %v, sent %v", err, recorder.Sent(http.MethodDelete))
	}
	outcome, err := b.delete()
	if sent := recorder.Sent(http.MethodDelete); err != nil || !outcome.Done() || len(sent) != 1 || !strings.HasSuffix(sent[0].Path, "/sealed") {
		t.Errorf("%v, waiting for %v, deleted %v", err, outcome.Waiting, sent)
	}
}

// The uid of the cluster identifies an inventory of another one.
func TestAnInventoryOfAnotherClusterIsRefused(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"))
	check.SameNamed(t, "the inventory is of the cluster", wire.ClusterUID, b.inventory.Target)
	b.inventory.Target = apitypes.UID("another")
	before := len(recorder.Writes())
	_, applied := b.apply(config("a", "2"))
	_, deleted := b.delete()
	for _, err := range []error{applied, deleted} {
		if _, changed := errors.AsType[*reconciler.TargetChangedError](err); !changed || len(recorder.Writes()) > before {
			t.Errorf("got %v, sent %v", err, recorder.Writes()[before:])
		}
	}
}

// A creation of a predecessor may arrive after the deletion.
func TestAnObjectThatComesBackAfterItsDeletionIsRecordedAndDeletedAgain(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"))
	late := recorder.Put(mustOwn(t, recorder, config("a", "1")))
	deletions := 0
	recorder.Answer = func(sent wire.Sent) (int, any) {
		if sent.Method != http.MethodDelete {
			return 0, nil
		}
		if deletions++; deletions > 1 {
			return 0, nil
		}
		return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	}
	outcome, err := b.delete()
	if err != nil || !outcome.Done() || deletions != 2 {
		t.Errorf("%v, waiting for %v, %d deletions of %s", err, outcome.Waiting, deletions, late.GetName())
	}
	wantAppearedAgain(t, outcome.Notes, "ConfigMap shop/a")
}

// wantAppearedAgain expects one note for each of these objects, and no other.
func wantAppearedAgain(t *testing.T, notes []report.Note, objects ...string) {
	t.Helper()
	var got []string
	for _, note := range notes {
		got = append(got, note.Key.String())
		if note.Reason != report.WarnOrphanFound || !note.Warning || !strings.Contains(note.Message, "appeared again") {
			t.Errorf("the note is %+v", note)
		}
	}
	slices.Sort(got)
	check.EqualNamed(t, "the notes are about", objects, got)
}

// Creations of a predecessor are found in a list, although one of the objects has lost its label.
func TestObjectsThatReappearAfterTheDeletionAreFoundByTheirOwnershipMetadata(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"), config("b", "1"), config("c", "1"), config("d", "1"))
	unlabelled, mine, theirs := mustOwn(t, recorder, config("a", "1")), mustOwn(t, recorder, config("b", "1")), mustOwn(t, recorder, config("c", "1"))
	unlabelled.SetLabels(nil)
	theirs.SetLabels(nil)
	theirs.SetAnnotations(nil)
	lists := 0
	recorder.Answer = func(sent wire.Sent) (int, any) {
		if sent.Method == http.MethodGet && sent.Path == "/api/v1/namespaces/shop/configmaps" {
			if lists++; lists == 1 {
				for _, object := range []*unstructured.Unstructured{unlabelled, mine, theirs} {
					recorder.Put(object)
				}
			}
		}
		return 0, nil
	}
	outcome, err := b.delete()
	if sent := recorder.Sent(http.MethodDelete); err != nil || !outcome.Done() || len(b.inventory.Items) > 0 || len(sent) != 6 {
		t.Errorf("%v, waiting for %v, sent %v", err, outcome.Waiting, sent)
	}
	wantAppearedAgain(t, outcome.Notes, "ConfigMap shop/a", "ConfigMap shop/b")
}

// mustOwn returns an object with the label and annotation that the engine sent for the last one that it created.
func mustOwn(t *testing.T, recorder *wire.Recorder, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	sent := recorder.Sent(http.MethodPost)
	if len(sent) == 0 {
		t.Fatal("nothing was created")
	}
	created := &unstructured.Unstructured{Object: sent[len(sent)-1].Body}
	object.SetNamespace(created.GetNamespace())
	object.SetLabels(created.GetLabels())
	annotations := created.GetAnnotations()
	maps.Copy(annotations, object.GetAnnotations())
	object.SetAnnotations(annotations)
	return object
}

func TestOnlyRecordedInstancesOfAManagedTypeAreOurs(t *testing.T) {
	foo := func(name, uid string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"namespace": "shop", "name": name, "uid": uid}}}
	}
	item := func(name, uid string) v1alpha1.InventoryItem {
		return v1alpha1.InventoryItem{Group: "example.com", Version: "v1", Kind: "Foo", Namespace: "shop", Name: name, UID: apitypes.UID(uid)}
	}
	ours := item("ours", "1")
	ours.Kept = []apitypes.UID{"6"}
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	for _, object := range []*unstructured.Unstructured{foo("ours", "1"), foo("made-anew", "3"), foo("theirs", "4"), foo("unconfirmed", "5"), foo("orphaned", "6")} {
		recorder.Put(object)
	}
	blockers, err := b.engine.DeletionBlockers(t.Context(), reconciler.DeleteRequest{
		Owner: b.owner(), ManagedTypes: []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}},
		Inventory: v1alpha1.Inventory{Items: []v1alpha1.InventoryItem{ours, item("made-anew", "2"), item("unconfirmed", "")}},
	})
	if err != nil || len(blockers) != 1 || blockers[0].Message != "2 foreign instances: Foo shop/made-anew, Foo shop/theirs" {
		t.Errorf("got %+v, %v", blockers, err)
	}
}

var configMapType = v1alpha1.InventoryType{Version: "v1", Kind: "ConfigMap"}

// lostRecord returns what an engine with an object of ours needs to look for more, and the request.
func lostRecord(t *testing.T) (*bench, *wire.Recorder, reconciler.RecoverRequest) {
	t.Helper()
	b, recorder := ownsRecorded(t, keyed(reconciler.ReconcilerOptions{}))
	b.mustApply(config("a", "1"))
	return b, recorder, reconciler.RecoverRequest{Owner: b.owner(), Inventory: v1alpha1.Inventory{Target: wire.ClusterUID}, Types: []v1alpha1.InventoryType{configMapType}}
}

// Controllers copy labels to what they make. What the manifest has written into an object is recorded again.
func TestARecoveryFindsOnlyObjectsWithBothLabelAndAnnotation(t *testing.T) {
	b, recorder, request := lostRecord(t)
	copied, earlier := mustOwn(t, recorder, config("copied", "1")), mustOwn(t, recorder, config("earlier", "1"))
	copied.SetAnnotations(nil)
	earlier.SetAnnotations(map[string]string{engineName + "/owner": earlier.GetAnnotations()[engineName+"/owner"] + "0"})
	for _, object := range []*unstructured.Unstructured{
		copied, earlier, mustOwn(t, recorder, config("backup", "1", "run-on", "pre-delete")),
		mustOwn(t, recorder, config("dependent", "1", "depends-on", "ConfigMap/a")),
		mustOwn(t, recorder, config("ordered", "1", "apply-order", "-3", "delete-order", "7", "delete-policy", "orphan-on-apply")),
		mustOwn(t, recorder, config("unreadable", "1", "delete-policy", "perhaps")), // it is not known that it may be deleted
	} {
		recorder.Put(object)
	}
	crd := mustOwn(t, recorder, definition("lostthings", "LostThing"))
	crd.SetNamespace("")
	recorder.Put(crd)
	request.Types = append(request.Types, configMapType, v1alpha1.InventoryType{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, v1alpha1.InventoryType{Group: "never.example.com", Version: "v1", Kind: "Ghost"})
	found, _, err := b.engine.Recover(t.Context(), request)
	check.NoError(t, err)
	for i := range found {
		if found[i].UID == "" {
			t.Errorf("%s has no uid", found[i].Name)
		}
		found[i].UID = ""
	}
	item := func(name string, change func(*v1alpha1.InventoryItem)) v1alpha1.InventoryItem {
		item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}
		change(&item)
		return item
	}
	want := []v1alpha1.InventoryItem{
		item("a", func(*v1alpha1.InventoryItem) {}),
		item("backup", func(i *v1alpha1.InventoryItem) { i.RunOn = "pre-delete" }),
		// A ConfigMap without a namespace does not exist, and keeps nothing.
		item("dependent", func(i *v1alpha1.InventoryItem) { i.DependsOn = []string{"/ConfigMap//a", "/ConfigMap/shop/a"} }),
		item("ordered", func(i *v1alpha1.InventoryItem) {
			i.ApplyOrder, i.DeleteOrder, i.DeletePolicy = -3, 7, v1alpha1.DeletePolicyOrphanOnApply
		}),
		item("unreadable", func(i *v1alpha1.InventoryItem) { i.DeletePolicy = v1alpha1.DeletePolicyOrphan }),
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: crd.GetName(), Defines: []reconciler.TypeInfo{{Group: "engine.corbel.run", Kind: "LostThing"}}},
	}
	check.EqualNamed(t, "found", want, found)
}

func TestRecoverListsTheRecordedNamespacesIfItMayNotListAll(t *testing.T) {
	b, recorder, request := lostRecord(t)
	recorder.Answer = func(sent wire.Sent) (int, any) {
		if sent.Path == "/api/v1/configmaps" || strings.Contains(sent.Path, "/kube-system/configmaps") {
			return http.StatusForbidden, wire.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, nil)
		}
		return 0, nil
	}
	for _, namespaces := range [][]string{{"shop"}, nil, {"shop", "kube-system"}} {
		request.Namespaces = namespaces
		found, _, err := b.engine.Recover(t.Context(), request)
		if refused := err != nil && strings.Contains(err.Error(), "type ConfigMap"); refused == slices.Equal(namespaces, []string{"shop"}) || refused != (len(found) == 0) {
			t.Errorf("namespaces %v: %d objects, error %v", namespaces, len(found), err)
		}
	}
}

// Another client may have made what is older than the owner: it is orphaned when it is not desired. What an earlier owner
// of the name has left is named once, and stays.
func TestRecoverWithoutARecord(t *testing.T) {
	b, recorder, request := lostRecord(t)
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, created := range map[string]time.Time{"older": since.Add(-time.Second), "younger": since.Add(time.Second), "earlier": since.Add(time.Second)} {
		object := mustOwn(t, recorder, config(name, "1"))
		object.SetCreationTimestamp(metav1.NewTime(created))
		if name == "earlier" {
			object.SetAnnotations(map[string]string{engineName + "/owner": object.GetAnnotations()[engineName+"/owner"] + "0"})
		}
		recorder.Put(object)
	}
	request.Since, request.Types, request.Patterns = since, nil, []reconciler.TypeInfo{{Kind: "ConfigMap"}, {Kind: "Secret"}}
	found, _, err := b.engine.Recover(t.Context(), request)
	policies := map[string]v1alpha1.DeletePolicy{}
	for _, item := range found {
		policies[item.Name] = item.DeletePolicy
	}
	if err != nil || len(found) != 4 || policies["older"] != v1alpha1.DeletePolicyOrphan || policies["younger"] != "" || policies["earlier"] != "" {
		t.Errorf("got %v, %v", policies, err)
	}
	b.inventory.Items = found
	outcome := b.mustApply(config("a", "1"))
	if sent := recorder.Sent(http.MethodDelete); len(sent) != 1 || !strings.HasSuffix(sent[0].Path, "/younger") ||
		!slices.ContainsFunc(outcome.Notes, func(n report.Note) bool { return n.Key.Name == "earlier" && n.Reason == "Released" }) {
		t.Errorf("sent %v, notes %v", sent, outcome.Notes)
	}

	// A type that may not be listed is left out, unless nothing else was looked for.
	forbidden := func(resources ...string) {
		recorder.Answer = func(sent wire.Sent) (int, any) {
			if slices.ContainsFunc(resources, func(name string) bool { return strings.HasSuffix(strings.Split(sent.Path, "?")[0], "/"+name) }) {
				return http.StatusForbidden, wire.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, nil)
			}
			return 0, nil
		}
	}
	forbidden("secrets")
	found, unlisted, err := b.engine.Recover(t.Context(), request)
	if err != nil || len(found) == 0 || !slices.Equal(unlisted, []string{"Secret"}) {
		t.Errorf("without secrets: %v, %v, %v", found, unlisted, err)
	}
	forbidden("secrets", "configmaps")
	if _, _, err = b.engine.Recover(t.Context(), request); !apierrors.IsForbidden(err) {
		t.Errorf("without rights: %v", err)
	}
}

// Every client can write the annotation, but only an operator knows its value, which is another one for each namespace.
func TestANamespaceWithAForgedSealWasNotCreatedByAnOperator(t *testing.T) {
	options := reconciler.ReconcilerOptions{DigestKey: []byte("0123456789abcdef0123456789abcdef")}
	b, recorder := ownsRecorded(t, options)
	b.mustApply(configIn("a", "extra"), configIn("b", "other"))
	seals := map[string]string{}
	for _, sent := range recorder.Writes() {
		if created := (&unstructured.Unstructured{Object: sent.Body}); created.GetKind() == "Namespace" {
			seals[created.GetName()] = created.GetAnnotations()[engineName+"/automatic"]
		}
	}
	for seal, want := range map[string]int{seals["extra"]: 2, seals["other"]: 1, "forged": 1} {
		namespace := namespaceOf("extra")
		namespace.SetAnnotations(map[string]string{engineName + "/automatic": seal})
		b, recorder := ownsRecorded(t, options)
		recorder.Put(namespace)
		if b.mustApply(configIn("a", "extra")); seal == "" || len(b.inventory.Items) != want {
			t.Errorf("%q: the record has %d items, want %d", seal, len(b.inventory.Items), want)
		}
	}
}
