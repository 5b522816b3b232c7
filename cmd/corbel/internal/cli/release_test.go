// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/helmrecord"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// states returns the objects without what says who owns and manages them: the uid and everything that is no metadata.
func (b *bed) states(objects []*unstructured.Unstructured) map[string]any {
	b.Helper()
	all := map[string]any{}
	for _, object := range objects {
		live := b.live(object)
		all[live.GetKind()+" "+live.GetName()] = content(live)
	}
	return all
}

func content(live *unstructured.Unstructured) map[string]any {
	fields := live.DeepCopy().Object
	fields["metadata"] = map[string]any{"uid": string(live.GetUID())} // the generation of a Deployment counts its annotations, too
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "spec", "volumeName") // a claim may be bound meanwhile
	return fields
}

func (b *bed) live(object *unstructured.Unstructured) *unstructured.Unstructured {
	b.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	check.NoError(b, b.client.Get(b.ctx, client.ObjectKeyFromObject(object), live))
	return live
}

// ownedByHelm checks that the objects belong to a release, and to no component.
func (b *bed) ownedByHelm(name string, objects []*unstructured.Unstructured) {
	b.Helper()
	for _, object := range objects {
		live := b.live(object)
		for key := range live.GetLabels() {
			if strings.HasPrefix(key, operatorName+"/") {
				b.Errorf("%s %s has the label %s", live.GetKind(), live.GetName(), key)
			}
		}
		for key := range live.GetAnnotations() {
			if strings.HasPrefix(key, operatorName+"/") {
				b.Errorf("%s %s has the annotation %s", live.GetKind(), live.GetName(), key)
			}
		}
		if owner := live.GetAnnotations()[helmName]; owner != name || live.GetAnnotations()[helmNamespace] != market || live.GetLabels()[managedBy] != "Helm" {
			b.Errorf("%s %s: %v %v", live.GetKind(), live.GetName(), live.GetLabels(), live.GetAnnotations())
		}
	}
}

// recordsOf returns the revisions of a release with their status.
func (b *bed) recordsOf(name string) (found []string) {
	b.Helper()
	records := check.Must(helmrelease.Records(b.ctx, b.client, market, name, "Secret", "ConfigMap"))(b)
	for _, record := range records {
		secret := &corev1.Secret{}
		check.NoError(b, b.client.Get(b.ctx, client.ObjectKeyFromObject(&record), secret))
		release := check.Must(helmrelease.Decode(secret.Data["release"]))(b)
		if release.Status != record.Labels["status"] || release.Revision != helmrelease.RevisionOf(record) {
			b.Errorf("%s: labels %v, content %s %s", record.Name, record.Labels, release.Reference, release.Status)
		}
		found = append(found, fmt.Sprintf("%d %s", release.Revision, release.Status))
	}
	return found
}

// removes deletes the objects and the records of a release.
func (b *bed) removes(name string, objects []*unstructured.Unstructured) {
	b.Helper()
	for _, object := range objects {
		check.NoError(b, client.IgnoreNotFound(b.client.Delete(b.ctx, object.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	check.NoError(b, b.client.DeleteAllOf(b.ctx, &corev1.Secret{}, client.InNamespace(market), client.MatchingLabels{"owner": "helm", "name": name}))
}

// releases plays how an administrator makes a component a Helm release again.
func (b *bed) releases(t *testing.T) {
	b = b.in(t)
	objects := b.helmInstalls("booth", 3)
	before := b.states(objects)
	if a := b.untilServed(func() answer { return b.run("adopt", "helm", "booth", "--as", "shop/booth") }); a.code != 0 {
		t.Fatal(a.text())
	}
	golden(t, "release to nothing", b.run("release", "shop/booth").text())
	golden(t, "release of none", b.run("release", "shop/none", "--to-helm").text())
	b.helmRecords("tent2", "deployed", 4, "", nil)
	golden(t, "release of another name", b.run("release", "shop/booth", "--to-helm", "--name", "tent2").text())
	golden(t, "release of a bad name", b.run("release", "shop/booth", "--to-helm", "--name", "Tent").text())
	if a := b.run("suspend", "shop/booth"); a.code != 0 {
		t.Fatal(a.text())
	}
	env.Until(b, "the Shop is suspended", func() error { return b.stateIs("booth", v1alpha1.StateSuspended) })
	golden(t, "release of a suspended one", b.run("release", "shop/booth", "--to-helm").text())
	if a := b.run("resume", "shop/booth"); a.code != 0 {
		t.Fatal(a.text())
	}
	b.untilReady("booth")
	golden(t, "release dry run", b.run("release", "shop/booth", "--to-helm", "--dry-run").text())
	if s := b.shop("booth"); len(b.recordsOf("booth")) != 1 || s.Annotations[operatorName+"/suspend"] != "" || s.Status.State != v1alpha1.StateReady {
		t.Errorf("after a dry run: %v", s.ObjectMeta)
	}

	change := func(text string) { b.patch(shops.New("booth"), text) }
	once := false
	changed := b.runWith(func(r *http.Request, body string) {
		if !once && r.Method == http.MethodPatch && strings.Contains(body, becoming) {
			once = true
			change(`{"spec":{"greeting":"Hello"}}`)
			change(`{"spec":{"greeting":"Welcome"}}`)
		}
	}, "release", "shop/booth", "--to-helm")
	if changed.code != CodeTrouble || !strings.Contains(changed.err, "Shop market/booth was changed meanwhile; run the command again when it is ready, or delete Secret market/sh.helm.release.v1.booth.v4") {
		t.Errorf("changed after its manifests were read: %s", changed.text())
	}
	b.untilReady("booth")
	kept := b.runWith(func(r *http.Request, _ string) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/shops/booth") {
			change(`{"metadata":{"annotations":{"shop.example.com/management-policy":null}}}`)
		}
	}, "release", "shop/booth", "--to-helm")
	if kept.code != CodeTrouble || !strings.Contains(kept.err, "Shop market/booth is not deleted, because it is no longer suspended, or its deletion would not keep its objects") {
		t.Errorf("without the annotation that keeps the objects: %s", kept.text())
	}
	change(`{"metadata":{"annotations":{"shop.example.com/management-policy":"detach-on-delete"}}}`)
	golden(t, "release", b.run("release", "shop/booth", "--to-helm").out)
	golden(t, "release again", b.run("release", "shop/booth", "--to-helm").text())
	if diff := cmp.Diff(before, b.states(objects)); diff != "" {
		t.Errorf("the objects are not as they were (-before +after):\n%s", diff)
	}
	b.ownedByHelm("booth", objects)
	check.Equal(t, []string{"3 superseded", "4 deployed"}, b.recordsOf("booth"))
	reference := helmrelease.Reference{Namespace: market, Name: "booth", Revision: 4}
	release := check.Must(helmrelease.Read(b.ctx, b.client, reference))(b)
	if release.Chart != "shop" || release.Values["greeting"] != "Welcome" || release.Values["replicas"] != int64(2) {
		t.Errorf("%+v", release)
	}
	if got := len(release.Objects); got != len(objects) {
		t.Errorf("%d manifests of %d objects", got, len(objects))
	}
	if *helmProgram != "" {
		b.helmGoesOn(objects, before)
		return
	}
	// The component is adopted once more, and left to a Helm operator.
	if a := b.run("adopt", "helm", "booth", "--as", "shop/booth"); a.code != 0 {
		t.Fatal(a.text())
	}
	golden(t, "release to a helm operator", b.run("release", "shop/booth", "--to-helm", "--keep-component").out)
	golden(t, "release to a helm operator again", b.run("release", "shop/booth", "--to-helm", "--keep-component").text())
	if diff := cmp.Diff(before, b.states(objects)); diff != "" {
		t.Errorf("the objects are not as they were (-before +after):\n%s", diff)
	}
	b.ownedByHelm("booth", objects)
	left := b.shop("booth")
	if len(left.Finalizers) > 0 || left.Status.AppliedGeneration != 0 || left.Status.AdoptedRelease != nil ||
		!maps.Equal(left.Annotations, map[string]string{operatorName + "/suspend": "true"}) {
		t.Errorf("finalizers %v, annotations %v, status %+v", left.Finalizers, left.Annotations, left.Status)
	}
	check.NoError(b, b.client.Delete(b.ctx, left))
	b.removes("booth", objects)
}

// helmGoesOn upgrades and uninstalls the release by Helm itself.
func (b *bed) helmGoesOn(objects []*unstructured.Unstructured, before map[string]any) {
	b.Helper()
	helm := func(arguments ...string) string {
		b.Helper()
		out, err := exec.Command(*helmProgram, append(arguments, "-n", market, "--kubeconfig", b.env.Kubeconfig())...).CombinedOutput()
		if err != nil {
			b.Fatalf("helm %v: %v\n%s", arguments, err, out)
		}
		return string(out)
	}
	if list := helm("list"); !strings.Contains(list, "booth") || !strings.Contains(list, "deployed") {
		b.Errorf("helm list:\n%s", list)
	}
	chart := b.TempDir()
	check.NoError(b, os.CopyFS(chart, os.DirFS("../../../../examples/shop/chart")))
	manifest := helm("get", "manifest", "booth")
	rendered := helm("template", "booth", chart, "--is-upgrade", "--no-hooks", "-f", b.file("values.yaml", helm("get", "values", "booth", "-o", "yaml")))
	if got, want := strings.Count(manifest, "# Source: "), strings.Count(rendered, "# Source: "); got != want {
		b.Errorf("helm get manifest has %d objects, and helm template %d", got, want)
	}
	for _, arguments := range [][]string{{"--reuse-values"}, {"--server-side=true"}} {
		helm(append([]string{"upgrade", "booth", chart, "--no-hooks"}, arguments...)...)
		if diff := cmp.Diff(before, b.states(objects)); diff != "" {
			b.Errorf("helm upgrade %v changed objects (-before +after):\n%s", arguments, diff)
		}
	}
	for _, server := range []string{"--server-side=false", "--server-side=true"} {
		helm("upgrade", "booth", chart, "--no-hooks", "--reuse-values", "--set", "greeting=Hello"+server, server)
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "booth-settings"}}
		check.NoError(b, b.client.Get(b.ctx, client.ObjectKeyFromObject(settings), settings))
		if got := settings.Data["GREETING"]; got != "Hello"+server {
			b.Errorf("after helm upgrade %s: %s", server, got)
		}
	}
	helm("uninstall", "booth", "--no-hooks")
	for _, object := range objects {
		live := object.DeepCopy()
		env.Until(b, "Helm has deleted "+object.GetKind()+" "+object.GetName(), func() error {
			err := b.client.Get(b.ctx, client.ObjectKeyFromObject(object), live)
			if client.IgnoreNotFound(err) == nil && err != nil {
				return nil
			}
			return errors.Join(errors.New("it is there"), err)
		})
	}
}

// file writes a file for the test.
func (b *bed) file(name, text string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), name)
	check.NoError(b, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// stateIs returns nil if a Shop has a state.
func (b *bed) stateIs(name string, want v1alpha1.State) error {
	s := shops.New(name)
	if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	if s.Status.State != want {
		return fmt.Errorf("it is %s", s.Status.State)
	}
	return nil
}

// runKilled runs a command that is killed at a request, and returns how many it sent.
func (b *bed) runKilled(at int, after bool, arguments ...string) (requests int, killed bool, a answer) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	g := &wire.Gate{At: at, After: after, Happens: func() error { cancel(); return wire.ErrCrashed }}
	a = b.runThrough(ctx, g.Wrap, arguments...)
	return len(g.Requests()), g.HasCrashed(), a
}

// survivesCrashes kills adopt and release at each of their requests, and runs them again.
func (b *bed) survivesCrashes(t *testing.T) {
	adopts, releases := b.in(t).roundTrip("trip", 0, 0, false)
	cases, ran := slice.FromEnvironment(t), 0
	for at := 1; at <= adopts+releases; at++ {
		for i, after := range []bool{false, true} {
			if !cases.Has(2*at + i) {
				continue
			}
			ran++
			name := fmt.Sprintf("trip%d", 2*at+i)
			t.Run(fmt.Sprintf("request %d, answered %t", at, after), func(t *testing.T) {
				if at <= adopts {
					b.in(t).roundTrip(name, at, 0, after)
				} else {
					b.in(t).roundTrip(name, 0, at-adopts, after)
				}
			})
		}
	}
	t.Logf("%d requests of adopt, %d of release, %d cases", adopts, releases, ran)
}

// roundTrip takes over a release, and goes back, with a crash at a request of one of the commands.
func (b *bed) roundTrip(name string, adoptDies, releaseDies int, after bool) (adopts, releases int) {
	b.Helper()
	objects := b.helmInstalls(name, 2)
	before := b.states(objects)
	run := func(at int, arguments ...string) (requests int) {
		b.Helper()
		killed := false
		a := b.untilServed(func() (a answer) {
			requests, killed, a = b.runKilled(at, after, arguments...)
			return a
		})
		switch {
		case killed:
			a = b.run(arguments...)
		case at > 0: // its waits are not always as long
			b.Logf("it sent %d requests only", requests)
		}
		if a.code != 0 {
			b.Fatalf("%v, killed %t: %s", arguments, killed, a.text())
		}
		return requests
	}
	adopts = run(adoptDies, "adopt", "helm", name, "--as", "shop/"+name, "--retire")
	if diff := cmp.Diff(before, b.states(objects)); diff != "" {
		b.Errorf("after the adoption the objects are not as they were (-before +after):\n%s", diff)
	}
	owner := b.shop(name)
	for _, object := range objects {
		live := b.live(object)
		if live.GetLabels()[operatorName+"/owner-id"] != owner.Status.OwnerID || live.GetAnnotations()[helmName] != "" {
			b.Errorf("%s %s does not belong to the Shop alone: %v %v", live.GetKind(), live.GetName(), live.GetLabels(), live.GetAnnotations())
		}
	}
	if !owner.Status.IsReady() || len(b.recordsOf(name)) > 0 {
		b.Errorf("the Shop is %s; records %v", owner.Status.State, b.recordsOf(name))
	}

	releases = run(releaseDies, "release", "shop/"+name, "--to-helm")
	if diff := cmp.Diff(before, b.states(objects)); diff != "" {
		b.Errorf("after the release the objects are not as they were (-before +after):\n%s", diff)
	}
	b.ownedByHelm(name, objects)
	if records := b.recordsOf(name); !slices.Equal(records, []string{"3 deployed"}) {
		b.Errorf("records %v", records)
	}
	if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(shops.New(name)), shops.New(name)); client.IgnoreNotFound(err) != nil || err == nil {
		b.Errorf("the Shop is there: %v", err)
	}
	b.removes(name, objects)
	return adopts, releases
}

func TestTheRevisionAfterAllThatAreKnown(t *testing.T) {
	reference := helmrelease.Reference{Namespace: "market", Name: "corner"}
	c := inspect.Component{Object: &unstructured.Unstructured{}}
	c.Object.SetUID("1")
	c.Status.Revision = 7
	c.Status.AdoptedRelease = &v1alpha1.AdoptedRelease{Namespace: "market", Name: "corner", Revision: 5}
	record := func(revision, status, from string) metav1.PartialObjectMetadata {
		r := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"version": revision, "status": status}, Annotations: map[string]string{madeFrom: from}}}
		r.Kind = "Secret"
		return r
	}
	settings := record("5", "deployed", "")
	settings.Kind = "ConfigMap"
	tests := []struct {
		name    string
		records []metav1.PartialObjectMetadata
		want    int64
		err     string
	}{
		{name: "no record", want: 8},
		{name: "the adopted one", records: []metav1.PartialObjectMetadata{record("4", "superseded", ""), record("5", "deployed", "")}, want: 8},
		{name: "later ones that are nothing any more", records: []metav1.PartialObjectMetadata{record("9", "uninstalled", ""), record("10", "failed", "")}, want: 11},
		{name: "one of an earlier run", records: []metav1.PartialObjectMetadata{record("8", "pending-upgrade", madeOf(c))}, want: 8},
		{name: "one of another component", records: []metav1.PartialObjectMetadata{record("8", "pending-upgrade", "Shop market/other 2 7")}, err: "its revision 8 is pending-upgrade"},
		{name: "one that Helm has upgraded since", records: []metav1.PartialObjectMetadata{record("5", "superseded", ""), record("6", "deployed", "")}, err: "its revision 6 is deployed"},
		{name: "one before the adopted one that was interrupted", records: []metav1.PartialObjectMetadata{record("3", "pending-upgrade", ""), record("5", "deployed", "")}, want: 8},
		{name: "one in a ConfigMap", records: []metav1.PartialObjectMetadata{settings}, err: "delete it first"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := nextRevision(test.records, reference, c)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %d, %v; want %d, %s", got, err, test.want, test.err)
			}
		})
	}
}

func TestWhatCannotBecomeARelease(t *testing.T) {
	c := inspect.Component{Object: &unstructured.Unstructured{}}
	source := &v1alpha1.Source{Generator: "helm", Chart: "shop", Version: "1.0.0"}
	key := report.Key{Kind: "ConfigMap", Namespace: "market", Name: "a"}
	for want, plan := range map[string]component.Plan{
		"in another cluster":                   {Remote: true, Source: source},
		"not rendered from a Helm chart":       {},
		"rolled back to revision 3":            {RollbackTo: 3, Source: source},
		"ConfigMap market/a: Update":           {Source: source, Plan: report.Plan{Changes: []report.PlannedChange{{Key: key, Class: report.ChangeUpdate}}}},
		"ConfigMap market/a: cannot be read":   {Source: source, Plan: report.Plan{Waiting: []report.Wait{{Key: key, Message: "cannot be read"}}}},
		"ConfigMap market/a: Blocked, because": {Source: source, Plan: report.Plan{Changes: []report.PlannedChange{{Key: key, Class: report.ChangeBlocked, Message: "because"}}}},
	} {
		if err := releasable(c, plan); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := releasable(c, component.Plan{Source: source}); err != nil {
		t.Error(err)
	}
}

func TestHiddenValuesAreThoseOfTheLiveObject(t *testing.T) {
	type object = map[string]any
	manifest := object{"rules": []any{object{"verbs": []any{nil, nil}}}, "gone": nil, "data": object{"a": nil}, "list": []any{nil}, "none": object{}}
	live := object{"rules": []any{object{"verbs": []any{"get", "list"}, "more": "set by the server"}}, "data": object{"a": "1", "b": "2"}, "list": []any{"x", "y"}, "status": object{}, "none": object{"z": "1"}}
	want := object{"rules": []any{object{"verbs": []any{"get", "list"}}}, "data": object{"a": "1"}, "list": []any{"x", "y"}, "none": object{}}
	check.Equal(t, any(want), fill(manifest, live))
}

func TestAHookRunsWhenItsObjectDoes(t *testing.T) {
	for _, test := range []struct{ events, runOn, want string }{
		{"pre-install,pre-upgrade", "", "pre-install,pre-upgrade"},
		{"pre-install, pre-delete", "", "pre-install"},
		{"pre-install,pre-delete", "pre-delete", "pre-delete"},
		{"post-delete", "post-delete", "post-delete"},
	} {
		hook := &unstructured.Unstructured{Object: map[string]any{}}
		hook.SetAnnotations(map[string]string{helmrecord.HookKey: test.events})
		limitHook(hook, test.runOn)
		if got := hook.GetAnnotations()[helmrecord.HookKey]; got != test.want {
			t.Errorf("%s on %q: got %s", test.events, test.runOn, got)
		}
	}
}

func TestWhatHasAnotherOwnerIsNamed(t *testing.T) {
	c := inspect.Component{Object: &unstructured.Unstructured{}, Reconciler: "shop.example.com"}
	c.Object.SetAPIVersion("shop.example.com/v1")
	c.Object.SetKind("Shop")
	c.Object.SetNamespace("market")
	c.Object.SetName("corner")
	c.Object.SetUID("1")
	of := func(name, owner, release string) metav1.PartialObjectMetadata {
		o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: name, Annotations: map[string]string{}}}
		o.Kind = "ConfigMap"
		if owner != "" {
			o.Annotations["shop.example.com/owner"], o.Labels = "shop.example.com/Shop/market/corner/"+owner, map[string]string{"shop.example.com/owner-id": "id"}
		}
		if release != "" {
			o.Annotations[helmName], o.Annotations[helmNamespace] = release, "market"
		}
		return o
	}
	if err := foreign(c, []metav1.PartialObjectMetadata{of("a", "1", "")}, nil); err != nil {
		t.Error(err)
	}
	release := &helmrelease.Release{Reference: helmrelease.Reference{Namespace: "market", Name: "corner", Revision: 8}}
	if err := foreign(c, []metav1.PartialObjectMetadata{of("a", "1", ""), of("b", "1", "corner"), of("c", "", "corner"), of("d", "", "")}, release); err != nil {
		t.Errorf("in the middle: %v", err)
	}
	if err := foreign(c, []metav1.PartialObjectMetadata{of("a", "2", "corner")}, release); err == nil {
		t.Error("an object that another component has taken over is marked")
	}
	err := foreign(c, []metav1.PartialObjectMetadata{of("a", "1", ""), of("b", "2", ""), of("c", "1", "corner")}, nil)
	if want := "ConfigMap market/b has another owner, or none; ConfigMap market/c belongs to Helm release market/corner"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
