// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// recorded is a bench that sends its requests to a recorder with an object of ours.
func recorded(t *testing.T, text string) (*bench, *wire.Recorder, *plan.Desired, plan.Observation) {
	t.Helper()
	recorder := wire.NewRecorder()
	b := benchOn(t, recorder.Config())
	d := b.desired(text, v1alpha1.UpdatePolicyReplace)
	recorder.Put(d.Manifest)
	return b, recorder, d, b.observe(d)
}

// TestEveryWriteSendsWhatThePlanSaw looks at the request of each verb.
func TestEveryWriteSendsWhatThePlanSaw(t *testing.T) {
	verbs := map[plan.Verb]string{plan.VerbMark: http.MethodPatch}
	for verb := range writes {
		verbs[verb] = http.MethodPatch
	}
	verbs[plan.VerbReplace], verbs[plan.VerbDelete] = http.MethodPut, http.MethodDelete
	for verb, method := range verbs {
		t.Run(string(verb), func(t *testing.T) {
			b, recorder, d, live := recorded(t, configMap("shop", "map"))
			if result := b.run(step(verb, d, live)); result.Err != nil {
				t.Fatal(result.Err)
			}
			sent := recorder.Writes()
			if len(sent) != 1 || sent[0].Method != method {
				t.Fatalf("sent %v", sent)
			}
			based := "metadata"
			if verb == plan.VerbDelete {
				based = "preconditions"
			}
			got := []string{sent[0].Field(based, "uid"), sent[0].Field(based, "resourceVersion")}
			check.EqualNamed(t, "uid and resourceVersion", []string{string(live.UID), live.ResourceVersion}, got)
			if result := b.run(step(verb, d, plan.Observation{})); result.Err == nil || len(recorder.Writes()) > 1 {
				t.Errorf("without a precondition: %v, sent %v", result.Err, recorder.Writes())
			}
		})
	}
}

func TestACreationSendsThatTheObjectMustNotExist(t *testing.T) {
	for policy, method := range map[v1alpha1.UpdatePolicy]string{
		v1alpha1.UpdatePolicyReplace: http.MethodPost, v1alpha1.UpdatePolicyRecreate: http.MethodPost,
		v1alpha1.UpdatePolicySsaMerge: http.MethodPatch, v1alpha1.UpdatePolicySsaOverride: http.MethodPatch,
	} {
		recorder := wire.NewRecorder()
		b := benchOn(t, recorder.Config())
		b.must(step(plan.VerbCreate, b.desired(configMap("shop", "map"), policy), plan.Observation{}))
		sent := recorder.Writes()
		if len(sent) != 1 || sent[0].Method != method {
			t.Fatalf("%s: sent %v", policy, sent)
		}
		// No object has the version 1, so the server refuses to apply to one that exists.
		if version := sent[0].Field("metadata", "resourceVersion"); method == http.MethodPatch && version != "1" || method == http.MethodPost && version != "" {
			t.Errorf("%s: the resourceVersion is %q", policy, version)
		}
		check.SameNamed(t, string(policy)+": the label of the owner", ownerID, sent[0].Field("metadata", "labels", reconciler+"/owner-id"))
	}
}

func TestAReplaceSendsTheFinalizersOfOthers(t *testing.T) {
	b, recorder, d, live := recorded(t, strings.Replace(configMap("shop", "map"), "metadata: {", "metadata: {finalizers: [example.com/ours], ", 1))
	live.Finalizers = []string{"example.com/theirs", "example.com/ours"}
	b.must(step(plan.VerbReplace, d, live))
	got, _, err := unstructured.NestedStringSlice(recorder.Writes()[0].Body, "metadata", "finalizers")
	if diff := gocmp.Diff(live.Finalizers, got); diff != "" || err != nil {
		t.Errorf("finalizers (-want +got):\n%s%v", diff, err)
	}
}

// What the plan saw is sent, without a read.
func TestAReplaceSendsTheFieldsThatHaveAnOwnerByDesign(t *testing.T) {
	b, recorder, d, live := recorded(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: shop, name: a}, imagePullSecrets: [{name: ours}]}`)
	s := step(plan.VerbReplace, d, live)
	s.Carried = `{"secrets":[{"name":"token"}],"imagePullSecrets":[{"name":"theirs"}]}`
	b.must(s)
	if sent := recorder.Writes()[0].Body; fmt.Sprint(sent["secrets"], sent["imagePullSecrets"]) != "[map[name:token]] [map[name:ours]]" {
		t.Errorf("sent %v", sent)
	}
}

func TestOrphaningSendsTheRemovalOfOurOwnershipMetadataAndNothingElse(t *testing.T) {
	b, recorder, d, live := recorded(t, configMap("shop", "map"))
	b.must(step(plan.VerbOrphan, d, live))
	want := map[string]any{"metadata": map[string]any{
		"uid": string(live.UID), "resourceVersion": live.ResourceVersion,
		"labels":      map[string]any{reconciler + "/owner-id": nil},
		"annotations": map[string]any{reconciler + "/owner": nil},
	}}
	check.Equal(t, want, recorder.Writes()[0].Body)
}

// The garbage collector would delete an orphan that refers to the component or to what is removed with it.
func TestOrphaningRemovesReferencesToWhatGoes(t *testing.T) {
	b, recorder, d, live := recorded(t, configMap("shop", "map"))
	s := step(plan.VerbOrphan, d, live)
	s.Owner.Ref.UID = "component"
	referring, all := d.Manifest.DeepCopy(), []metav1.OwnerReference{}
	for _, uid := range []types.UID{s.Owner.Ref.UID, "removed", "stays"} {
		all = append(all, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: string(uid), UID: uid})
	}
	referring.SetOwnerReferences(all)
	recorder.Put(referring)
	s.HasOwnerReferences, s.Removes = true, []types.UID{"removed"}
	b.must(s)
	left := &unstructured.Unstructured{Object: recorder.Writes()[0].Body}
	check.EqualNamed(t, "ownerReferences", all[2:], left.GetOwnerReferences())
}

// What changed since the plan is deleted, and orphaned, only if it is still ours, and not for ever.
func TestAnObjectThatChangesItsOwnerBetweenTheReadAndTheRequestIsNotTouched(t *testing.T) {
	edit := func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"key": "new"} }
	label := func(key, value string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{reconciler + "/owner-id": ownerID, key: value})
		}
	}
	annotate := func(key, value string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{reconciler + "/owner": ownerRef.String(), key: value})
		}
	}
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		ours   bool
	}{
		"its content changed":         {edit, true},
		"another owner of ours":       {label(reconciler+"/owner-id", "another"), false},
		"another incarnation of ours": {annotate(reconciler+"/owner", "example.com/Shop/shop/main/later"), false},
		"another reconciler":          {label("bank.example.com/owner-id", "theirs"), false},
		"a Helm release":              {annotate("meta.helm.sh/release-name", "theirs"), false},
		"no owner":                    {func(o *unstructured.Unstructured) { o.SetLabels(nil); o.SetAnnotations(nil) }, false},
	} {
		for verb, method := range map[plan.Verb]string{plan.VerbDelete: http.MethodDelete, plan.VerbOrphan: http.MethodPatch} {
			for _, at := range []int{1, 2, 5} { // the request before which it changes so; it is edited before the others
				t.Run(fmt.Sprintf("%s, %s %d", name, method, at), func(t *testing.T) {
					b, recorder, d, live := recorded(t, configMap("shop", "map"))
					requests := 0
					recorder.Answer = func(sent wire.Sent) (int, any) {
						if sent.Method != method {
							return 0, nil
						}
						if requests++; requests > at {
							return 0, nil
						}
						changed := d.Manifest.DeepCopy()
						if edit(changed); requests == at {
							tc.change(changed)
						}
						recorder.Put(changed)
						return http.StatusConflict, wire.Failure(http.StatusConflict, metav1.StatusReasonConflict, nil)
					}
					result := b.run(step(verb, d, live))
					sent, again := recorder.Sent(method), tc.ours && at < 5
					if want := at + map[bool]int{true: 1}[again]; len(sent) != want || execute.IsConflict(result.Err) == again {
						t.Errorf("sent %v, %v", sent, result.Err)
					}
				})
			}
		}
	}
}

const foosDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.example.com}, status: {conditions: [{type: Established, status: "True"}]}}`

// foo is an instance of the type that the definition brings.
func foo(t *testing.T, name string) *unstructured.Unstructured {
	return parse(t, `{apiVersion: example.com/v1, kind: Foo, metadata: {namespace: shop, name: `+name+`, uid: uid-of-`+name+`}}`)
}

func TestATypeIsNotDeletedWhileAnythingOfItIsThere(t *testing.T) {
	own := plan.Key{Group: "example.com", Kind: "Foo", Namespace: "shop", Name: "ours"}
	refuse := func(code int, reason metav1.StatusReason) func(wire.Sent) (int, any) {
		return func(sent wire.Sent) (int, any) {
			if strings.HasSuffix(sent.Path, "/foos") {
				return code, wire.Failure(code, reason, nil)
			}
			return 0, nil
		}
	}
	gone := func(path string) *metav1.StatusDetails { // of an object; a path that is not served has none
		if !strings.HasSuffix(path, "/foos.example.com") {
			return nil
		}
		return &metav1.StatusDetails{Name: "foos.example.com", Group: "apiextensions.k8s.io", Kind: "customresourcedefinitions"}
	}
	aggregated := func(version string) string {
		return `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: ` + version + `}}`
	}
	unserved := func(established string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: bars.example.com}, status: {conditions: [{type: Established, status: "` + established + `"}]}}`
	}
	for name, tc := range map[string]struct {
		definition string // if it is not that of Foo
		read       string // the end of the path of the last read before a deletion, if it is not the list of Foo
		instances  []string
		deleting   bool
		answer     func(wire.Sent) (int, any)
		kept       bool
		blocked    string
		failed     bool
		orphaned   bool
	}{
		"an instance of ours that is being deleted": {instances: []string{"ours"}, deleting: true, blocked: "1 instance of ours still being deleted: Foo shop/ours"},
		"no instance of an aggregated server":       {definition: aggregated("v1.example.com")},
		"an instance of others of such a server":    {definition: aggregated("v1.example.com"), instances: []string{"theirs"}, blocked: "1 foreign instance: Foo shop/theirs"},
		"an aggregated server that is gone":         {definition: aggregated("v1.nowhere.example.com"), read: "/nowhere.example.com/v1"},
		"a type that was never established":         {definition: unserved("False"), read: "/bars.example.com"},
		"a type that is served in no version":       {definition: unserved("True"), blocked: "no version of it is served, so that its instances cannot be counted"},
		"no instance":                               {},
		"an instance of others":                     {instances: []string{"theirs"}, blocked: "1 foreign instance: Foo shop/theirs"},
		"an instance of ours":                       {instances: []string{"ours"}, blocked: "1 instance of ours that must go first: Foo shop/ours"},
		"one of each":                               {instances: []string{"ours", "theirs"}, blocked: "1 foreign instance: Foo shop/theirs; 1 instance of ours that must go first: Foo shop/ours"},
		"instances that we may not list":            {answer: refuse(http.StatusForbidden, metav1.StatusReasonForbidden), failed: true},
		"instances that cannot be listed":           {answer: refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError), failed: true},
		"instances of no path":                      {answer: refuse(http.StatusNotFound, metav1.StatusReasonNotFound), failed: true},
		"a type that is removed meanwhile": {read: "/foos.example.com", answer: func(sent wire.Sent) (int, any) {
			return http.StatusNotFound, wire.Failure(http.StatusNotFound, metav1.StatusReasonNotFound, gone(sent.Path))
		}},
		"an instance that was orphaned":  {instances: []string{"left"}, kept: true, orphaned: true},
		"one orphaned and one of others": {instances: []string{"left", "theirs"}, kept: true, blocked: "1 foreign instance: Foo shop/theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			b, recorder, d, live := recorded(t, cmp.Or(tc.definition, foosDefinition))
			for _, name := range tc.instances {
				instance := foo(t, name)
				if tc.deleting {
					instance.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
					instance.SetFinalizers([]string{"example.com/f"})
				}
				recorder.Put(instance)
			}
			recorder.Answer = tc.answer
			s := step(plan.VerbDelete, d, live)
			s.Guard, s.OwnInstances, s.Owner.Ref.Namespace = plan.GuardNoInstances, []plan.Key{own}, "shop"
			if tc.kept {
				s.Guard, s.ItemAfter.Kept = plan.GuardNoInstancesElseOrphan, append(s.ItemAfter.Kept, "uid-of-left")
			}
			result := b.run(s)
			if result.Blocked != tc.blocked || (result.Err != nil) != tc.failed || result.Orphaned != tc.orphaned {
				t.Errorf("blocked: %q, error: %v, orphaned: %v", result.Blocked, result.Err, result.Orphaned)
			}
			deleted := len(recorder.Sent(http.MethodDelete)) > 0
			if mayBe := tc.blocked == "" && !tc.failed && !tc.orphaned; deleted != mayBe {
				t.Errorf("sent %v", recorder.Sent())
			}
			if deleted { // what let it pass was a read right before it
				sent := recorder.Sent()
				at := slices.IndexFunc(sent, func(s wire.Sent) bool { return s.Method == http.MethodDelete })
				if at < 1 || !strings.HasSuffix(sent[at-1].Path, cmp.Or(tc.read, "/foos")) {
					t.Errorf("sent %v", sent)
				}
			}
		})
	}
}

// A refusal of the deletion lets the guard look once more.
func TestATypeIsGuardedAgainBeforeEachDeletion(t *testing.T) {
	b, recorder, d, live := recorded(t, foosDefinition)
	recorder.Answer = func(sent wire.Sent) (int, any) {
		if sent.Method != http.MethodDelete {
			return 0, nil
		}
		recorder.Put(d.Manifest)
		recorder.Put(foo(t, "theirs"))
		return http.StatusConflict, wire.Failure(http.StatusConflict, metav1.StatusReasonConflict, nil)
	}
	s := step(plan.VerbDelete, d, live)
	s.Guard, s.Owner.Ref.Namespace = plan.GuardNoInstances, "shop"
	if result := b.run(s); result.Blocked != "1 foreign instance: Foo shop/theirs" || len(recorder.Sent(http.MethodDelete)) != 1 {
		t.Errorf("got %+v, sent %v", result, recorder.Sent())
	}
}

func TestANamespaceIsNotDeletedWhileAnythingIsInIt(t *testing.T) {
	forbid := func(sent wire.Sent) (int, any) {
		if strings.HasSuffix(sent.Path, "/secrets") {
			return http.StatusForbidden, wire.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, nil)
		}
		return 0, nil
	}
	object := func(apiVersion, kind, name, more string) string {
		return `{apiVersion: ` + apiVersion + `, kind: ` + kind + `, metadata: {namespace: shop, name: ` + name + `, uid: uid-of-` + name + more + `}}`
	}
	ownedBy := func(kind, uid string) string {
		return `, ownerReferences: [{apiVersion: ` + kind + `, name: owner, controller: true, uid: ` + uid + `}]`
	}
	replicas := func(owner string) string { return object("apps/v1", "ReplicaSet", "replicas", owner) }
	pod := object("v1", "Pod", "pod", ownedBy("apps/v1, kind: ReplicaSet", "uid-of-replicas"))
	for name, tc := range map[string]struct {
		namespace string // shop, if it is empty
		content   []string
		answer    func(wire.Sent) (int, any)
		guard     plan.Guard // GuardEmpty, if it is empty
		blocked   string
		keeps     bool
		note      string // if it is orphaned
	}{
		"an object in one of the manifests that keeps an orphan": {guard: plan.GuardEmptyElseOrphan, keeps: true, content: []string{configMap("shop", "theirs")},
			note: "is orphaned, because something in it was orphaned before and would be deleted with it"},
		"an object in one that was created": {guard: plan.GuardEmptyElseOrphan, content: []string{configMap("shop", "theirs")},
			note: "released: it is in use by others: 1 object lives in it (listed by kubectl get configmaps --namespace shop)"},
		"the system's own": {namespace: "kube-public", guard: plan.GuardEmptyElseOrphan, note: "released: it is never deleted"},
		"nothing":          {},
		"what the control plane puts there": {content: []string{
			object("v1", "ConfigMap", "kube-root-ca.crt", ""), object("v1", "ServiceAccount", "default", ""),
			object("v1", "Secret", "default-token-x", ", annotations: {kubernetes.io/service-account.name: default}"), object("v1", "Event", "e", ""),
			object("v1", "Endpoints", "s", ""), object("coordination.k8s.io/v1", "Lease", "l", ""), object("discovery.k8s.io/v1", "EndpointSlice", "s", ""),
		}},
		"an object": {content: []string{configMap("shop", "theirs")}, blocked: "configmaps"},
		"a token that only looks like the default one":        {content: []string{object("v1", "Secret", "default-token-x", "")}, blocked: "secrets"},
		"a claim of a StatefulSet":                            {content: []string{object("v1", "PersistentVolumeClaim", "data-db-0", "")}, blocked: "persistentvolumeclaims"},
		"an object with an owner of a type that is not known": {content: []string{object("v1", "Pod", "pod", ownedBy("example.org/v1, kind: Bar", "b"))}, blocked: "pods"},
		"an object with an owner without a namespace":         {content: []string{object("v1", "Pod", "pod", ownedBy("v1, kind: Namespace", "b"))}, blocked: "pods"},
		"an object with an owner that is gone":                {content: []string{replicas(ownedBy("v1, kind: Secret", "b"))}},
		"a chain of controllers of which the first is gone":   {content: []string{replicas(ownedBy("v1, kind: Secret", "b")), pod}},
		"a chain of controllers":                              {content: []string{replicas(""), pod}, blocked: "pods,replicasets.apps"},
		"what we may not read":                                {answer: forbid, blocked: "types that may not be listed: secrets"},
		"the system's own, without a look":                    {namespace: "kube-public", guard: plan.GuardNone, blocked: "never deleted"},
		"the default, without a look":                         {namespace: "default", guard: plan.GuardNone, blocked: "never deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			b, recorder, d, live := recorded(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+cmp.Or(tc.namespace, "shop")+`}}`)
			for _, text := range tc.content {
				recorder.Put(parse(t, text))
			}
			recorder.Answer = tc.answer
			s := step(plan.VerbDelete, d, live)
			s.Guard, s.ItemAfter.Keeps = cmp.Or(tc.guard, plan.GuardEmpty), tc.keeps
			result := b.run(s)
			if stays := tc.blocked != "" || tc.note != ""; !strings.Contains(result.Blocked, tc.blocked) || (result.Blocked != "") != (tc.blocked != "") || result.Err != nil || (len(recorder.Sent(http.MethodDelete)) > 0) == stays {
				t.Errorf("blocked: %q, error: %v, sent %v", result.Blocked, result.Err, recorder.Sent())
			}
			var want []plan.Note
			if tc.note != "" {
				want = []plan.Note{{Key: s.Key, Reason: report.NoteReleased, Message: tc.note}}
			}
			if tc.keeps {
				want[0].Reason, want[0].Warning = report.WarnKeptForOrphan, true
			}
			check.EqualNamed(t, "notes", want, result.Notes)
		})
	}
}

func TestOnlyAnAdoptionRemovesTheOwnershipMetadataOfTheFormerOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*plan.Step)
		writes int
	}{
		"an adoption":                      {func(*plan.Step) {}, 2},
		"a confirmation":                   {func(s *plan.Step) { s.Reason = plan.ReasonUnconfirmed }, 2},
		"a label that came back":           {func(s *plan.Step) { s.Reason = plan.ReasonOwnershipShared }, 2},
		"a change of the manifest":         {func(s *plan.Step) { s.Reason = plan.ReasonManifestChanged }, 1},
		"a policy that adopts from nobody": {func(s *plan.Step) { s.Desired.Policies.Adoption = v1alpha1.AdoptionPolicyIfUnowned }, 1},
		"an annotation of the manifest": {func(s *plan.Step) {
			s.Desired.Manifest.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web", reconciler + "/owner": ownerRef.String()})
		}, 1},
	} {
		recorder := wire.NewRecorder()
		b := benchOn(t, recorder.Config())
		theirs := parse(t, configMap("shop", "map"))
		theirs.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web", "theirs": "1"})
		recorder.Put(theirs)
		d := b.desired(configMap("shop", "map"), v1alpha1.UpdatePolicySsaMerge)
		d.Policies.Adoption = v1alpha1.AdoptionPolicyAlways
		s := step(plan.VerbMerge, d, b.observe(d))
		s.Reason = plan.ReasonAdopted
		tc.change(&s)
		b.must(s)
		if sent := recorder.Writes(); len(sent) != tc.writes {
			t.Errorf("%s: sent %v", name, sent)
		}
		annotations := b.live(d).GetAnnotations()
		if annotations["theirs"] != "1" || (annotations["meta.helm.sh/release-name"] == "") != (tc.writes == 2) {
			t.Errorf("%s: annotations %v", name, annotations)
		}
	}
}

// An object becomes ours only if the owner is confirmed; a write of an object that is ours needs no confirmation.
func TestOwnershipIsAcquiredOnlyAfterTheConfirmation(t *testing.T) {
	refusal := fmt.Errorf("another process leads")
	ctx := execute.WithConfirm(t.Context(), func(context.Context) error { return refusal })
	b, recorder, d, live := recorded(t, configMap("shop", "map"))
	adoption := step(plan.VerbReplace, d, live)
	adoption.Reason = plan.ReasonAdopted
	for name, tc := range map[string]struct {
		step    plan.Step
		refused bool
	}{
		"a creation":          {step(plan.VerbCreate, b.desired(configMap("shop", "new"), v1alpha1.UpdatePolicyReplace), plan.Observation{}), true},
		"an adoption":         {adoption, true},
		"a change of our own": {step(plan.VerbReplace, d, live), false},
	} {
		before := len(recorder.Writes())
		results := b.executor.Run(ctx, []plan.Step{tc.step})
		if refused := errors.Is(results[0].Err, refusal); refused != tc.refused || (len(recorder.Writes()) == before) != tc.refused {
			t.Errorf("%s: %v, sent %v", name, results[0].Err, recorder.Writes()[before:])
		}
	}
}

// A warning about a Secret may quote a value.
func TestAWarningOfTheServerIsANoteUnlessItIsAboutASecret(t *testing.T) {
	for kind, want := range map[string][]plan.Note{
		"ConfigMap": {{Key: plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "map"}, Reason: report.WarnServer, Warning: true, Message: `unknown field "dat"; v1 "old" is deprecated`}},
		"Secret":    nil,
	} {
		for verb, policy := range map[plan.Verb]v1alpha1.UpdatePolicy{plan.VerbCreate: v1alpha1.UpdatePolicyReplace, plan.VerbReplace: v1alpha1.UpdatePolicyReplace, plan.VerbOverride: v1alpha1.UpdatePolicySsaOverride} {
			recorder := wire.NewRecorder()
			config := recorder.Config()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return warner{next} })
			b := benchOn(t, config)
			d := b.desired(`{apiVersion: v1, kind: `+kind+`, metadata: {namespace: shop, name: map}}`, policy)
			live := plan.Observation{}
			if verb != plan.VerbCreate {
				recorder.Put(d.Manifest)
				live = b.observe(d)
			}
			result := b.run(step(verb, d, live))
			if diff := gocmp.Diff(want, result.Notes); diff != "" || result.Err != nil {
				t.Errorf("%s %s: notes (-want +got):\n%s%v", verb, kind, diff, result.Err)
			}
		}
	}
}

// warner adds warnings to the answers to writes.
type warner struct{ next http.RoundTripper }

func (w warner) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet {
		for _, text := range []string{`unknown field \"dat\"`, `unknown field \"dat\"`, `v1 \"old\" is deprecated`} {
			response.Header.Add("Warning", `299 - "`+text+`"`)
		}
	}
	return response, err
}
