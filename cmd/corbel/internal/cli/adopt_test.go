// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

func TestTheValuesOfAReleaseFindTheirPlaces(t *testing.T) {
	type object = map[string]any
	type props = map[string]apiextensionsv1.JSONSchemaProps
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	typed := props{
		"image": {Type: "object", Properties: props{"tag": text}}, "labels": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
		"replicas": {Type: "integer"}, "suspend": {Type: "boolean"}, "maybe": {Type: "string", Nullable: true},
	}
	curated := props{"values": open}
	for name, field := range typed {
		curated[name] = field
	}
	tests := []struct {
		name     string
		values   object
		fields   props
		want     object
		unmapped []string
	}{
		{"nothing", nil, typed, object{}, nil},
		{"fields of the same path", object{"replicas": int64(3), "image": object{"tag": "1"}, "labels": object{"a": "b"}}, typed, object{"replicas": int64(3), "image": object{"tag": "1"}, "labels": object{"a": "b"}}, nil},
		{"no such fields", object{"image": object{"tag": "1", "registry": "r"}, "other": object{"a": 1}}, typed, object{"image": object{"tag": "1"}}, []string{"image.registry", "other"}},
		{"below values", object{"image": object{"tag": "1", "registry": "r"}, "other": object{"a": 1}}, curated, object{"image": object{"tag": "1"}, "values": object{"image": object{"registry": "r"}, "other": object{"a": 1}}}, nil},
		{"a text for a reference", object{"auth": object{"password": "x", "user": "u"}}, props{"values": open, "auth": {Type: "object", Properties: props{"password": {Type: "object", Properties: props{"name": text}}, "user": text}}},
			object{"auth": object{"user": "u"}, "values": object{"auth": object{"password": "x"}}}, nil},
		{"a field of ours", object{"suspend": true}, typed, object{}, []string{"suspend"}},
		{"a field of ours, below values", object{"suspend": true, "values": object{"a": 1}}, curated, object{"values": object{"suspend": true, "values": object{"a": 1}}}, nil},
		{"a null", object{"maybe": nil, "replicas": nil}, typed, object{"maybe": nil}, []string{"replicas"}},
		{"values that take no anything", object{"other": "a"}, props{"values": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}}}, object{}, []string{"other"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec, unmapped := specOf(test.values, apiextensionsv1.JSONSchemaProps{Properties: test.fields})
			check.Equal(t, []any{test.want, test.unmapped}, []any{spec, unmapped})
		})
	}
}

func TestWhatIsMoreThanOwnership(t *testing.T) {
	key := report.Key{Kind: "ConfigMap", Namespace: "market", Name: "a"}
	with := func(paths ...string) report.PlannedChange {
		change := report.PlannedChange{Key: key, Class: report.ChangeAdopt}
		for _, path := range paths {
			change.Fields = append(change.Fields, report.FieldChange{Path: path})
		}
		return change
	}
	tests := []struct {
		name   string
		change report.PlannedChange
		want   []string
	}{
		{"labels and annotations", with("metadata.labels", `metadata.labels["app.kubernetes.io/managed-by"]`, "metadata.annotations.owner"), nil},
		{"a value", with("metadata.labels.a", "data.a"), []string{"ConfigMap market/a: data.a"}},
		{"a similar name", with("metadata.labelsOf"), []string{"ConfigMap market/a: metadata.labelsOf"}},
		{"labels of a template", with("spec.template.metadata.labels.a"), []string{"ConfigMap market/a: spec.template.metadata.labels.a"}},
		{"more fields", report.PlannedChange{Key: key, Class: report.ChangeAdopt, MoreFields: 1}, []string{"ConfigMap market/a: Adopt, with more fields than a plan shows"}},
		{"not asked", report.PlannedChange{Key: key, Class: report.ChangeAdopt, DependsOnCluster: "webhook"}, []string{"ConfigMap market/a: Adopt, but the server could not be asked: webhook"}},
		{"a creation", report.PlannedChange{Key: key, Class: report.ChangeCreate}, []string{"ConfigMap market/a: Create"}},
		{"a refusal", report.PlannedChange{Key: key, Class: report.ChangeBlocked, Message: "why"}, []string{"ConfigMap market/a: Blocked, why"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			check.Equal(t, test.want, beyondOwnership(report.Plan{Changes: []report.PlannedChange{test.change}}))
		})
	}
}

// helmInstalls makes the objects and the record of a release of the chart of the shops, as Helm does, and returns the objects.
func (b *bed) helmInstalls(name string, revision int) (objects []*unstructured.Unstructured) {
	b.Helper()
	generator := check.Must(helm.New(os.DirFS("../../../../examples/shop"), "chart", helm.Options{}))(b)
	ctx := manifests.Context{ReconcilerName: operatorName, Revision: int64(revision), Upgrade: true}.In(b.ctx)
	rendered := check.Must(manifests.Generate(ctx, generator, market, name, shops.New(name).GetSpec()))(b)
	check.NoError(b, client.IgnoreAlreadyExists(shops.CreateSecret(b.ctx, b.client, name)))
	var manifest strings.Builder
	for _, object := range rendered {
		u := object.(*unstructured.Unstructured)
		annotations := u.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			return strings.HasPrefix(key, operatorName+"/") || strings.HasPrefix(key, "helm.corbel.run/")
		})
		if annotations["helm.sh/hook"] != "" {
			continue // it ran, and is gone
		}
		u.SetAnnotations(annotations)
		if u.GetKind() != "CustomResourceDefinition" { // which belongs to no release, and to no component
			text := check.Must(yaml.Marshal(u.Object))(b)
			fmt.Fprintf(&manifest, "---\n%s", text)
			marks := map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": market}
			maps.Copy(marks, annotations)
			u.SetAnnotations(marks)
			u.SetNamespace(market)
			objects = append(objects, u)
		}
		env.Until(b, u.GetKind()+" "+u.GetName()+" exists", func() error { // a type may not be served yet
			err := b.client.Create(b.ctx, u, client.FieldOwner("helm"))
			if !apierrors.IsAlreadyExists(err) {
				return err
			}
			if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(u), u); err != nil {
				return err
			}
			if u.GetDeletionTimestamp() != nil {
				return errors.New("it is being deleted")
			}
			return nil
		})
	}
	var values map[string]any
	text, err := json.Marshal(shops.New(name).Spec)
	check.NoError(b, errors.Join(err, json.Unmarshal(text, &values)))
	b.helmRecords(name, "deployed", revision, manifest.String(), values)
	return objects
}

// helmRecords makes the record of a release.
func (b *bed) helmRecords(name, status string, revision int, manifest string, values map[string]any) {
	b.Helper()
	content, err := json.Marshal(map[string]any{
		"name": name, "namespace": market, "version": revision, "manifest": manifest, "config": values,
		"info": map[string]any{"status": status}, "chart": map[string]any{"metadata": map[string]any{"name": "shop", "version": "1.0.0"}},
	})
	check.NoError(b, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(content)
	check.NoError(b, errors.Join(err, w.Close()))
	check.NoError(b, b.client.Create(b.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: market, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision),
			Labels: map[string]string{"owner": "helm", "name": name, "version": fmt.Sprint(revision), "status": status},
		},
		Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}))
}

// untilServed repeats a command until the operator knows the type of the Promotion again, which was deleted with another Shop.
func (b *bed) untilServed(run func() answer) (a answer) {
	b.Helper()
	env.Until(b, "the type of the Promotion is served", func() error {
		if a = run(); strings.Contains(a.err, "is not for dependent objects") {
			return errors.New(a.err)
		}
		return nil
	})
	return a
}

// learnsThePromotion does the same before a command that must run once: a Shop that stays suspended is planned.
func (b *bed) learnsThePromotion(name string) {
	b.Helper()
	probe := shops.New(name)
	probe.Name, probe.Annotations = name+"-probe", map[string]string{operatorName + "/suspend": "true"}
	check.NoError(b, b.client.Create(b.ctx, probe))
	env.Until(b, "the operator has seen "+probe.Name, func() error { return b.stateIs(probe.Name, v1alpha1.StateSuspended) })
	if a := b.untilServed(func() answer { return b.run("plan", "shop/"+probe.Name) }); a.code != 0 {
		b.Log(a.text())
	}
	if a := b.run("delete", "shop/"+probe.Name); a.code != 0 {
		b.Error(a.text())
	}
}

// adopts plays how an administrator takes over a Helm release.
func (b *bed) adopts(t *testing.T) {
	b = b.in(t)
	b.helmInstalls("kiosk", 7)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "kiosk-settings"}}
	pods := func() string {
		list := &corev1.PodList{}
		check.NoError(b, b.client.List(b.ctx, list, client.InNamespace(market)))
		var names []string
		for _, pod := range list.Items {
			if strings.HasPrefix(pod.Name, "kiosk-") {
				names = append(names, string(pod.UID))
			}
		}
		return strings.Join(names, " ")
	}
	env.Until(b, "the pods of the release run", func() error {
		if pods() == "" {
			return errors.New("there are none")
		}
		return nil
	})
	exists := func() bool {
		return b.client.Get(b.ctx, client.ObjectKeyFromObject(shops.New("kiosk")), shops.New("kiosk")) == nil
	}

	b.helmRecords("stall", "deployed", 1, "", map[string]any{"greeting": "a", "cache": map[string]any{"size": 1}, "suspend": true})
	b.helmRecords("tent", "deployed", 1, "", nil)
	b.helmRecords("tent", "pending-upgrade", 2, "", nil)
	golden(t, "adopt unmapped", b.run("adopt", "helm", "stall", "--as", "shop/stall").text())
	golden(t, "adopt pending", b.run("adopt", "helm", "tent", "--as", "shop/tent").text())
	golden(t, "adopt no kind", b.run("adopt", "helm", "kiosk", "--as", "kiosk").text())
	golden(t, "adopt no component", b.run("adopt", "helm", "kiosk", "--as", "configmap/kiosk").text())
	another := b.run("adopt", "helm", "kiosk", "--as", "shop/other")
	if another.code != CodeTrouble || !strings.Contains(another.err, "is deleted again") || !strings.Contains(another.err, "the component is deployed as market/other, and both must have the same name and namespace") {
		t.Errorf("as another: %s", another.text())
	}
	golden(t, "adopt missing", b.run("adopt", "helm", "booth", "--as", "shop/booth").text())
	golden(t, "adopt dry run", b.run("adopt", "helm", "kiosk", "--as", "shop/kiosk", "--dry-run").text())
	if exists() {
		t.Error("a dry run has created the Shop")
	}

	b.patch(settings, `{"data":{"more":"by hand"}}`)
	more := b.untilServed(func() answer { return b.run("adopt", "helm", "kiosk", "--as", "shop/kiosk") })
	if more.code != CodeTrouble || !strings.Contains(more.err, "more than the ownership would change: ConfigMap market/kiosk-settings: data.more") || exists() {
		t.Errorf("with a change by hand: %s", more.text())
	}
	b.patch(settings, `{"data":{"more":null}}`)

	before := pods()
	taken := b.run("adopt", "helm", "kiosk", "--as", "shop/kiosk", "--retire")
	golden(t, "adopt", taken.out)
	if taken.code != 0 {
		t.Errorf("%s", taken.text())
	}
	if after := pods(); after != before {
		t.Errorf("pods before: %s; after: %s", before, after)
	}
	if s := b.shop("kiosk"); s.Status.AdoptedRelease == nil || s.Status.Revision != 7 {
		t.Errorf("%+v", s.Status.Status)
	}
	golden(t, "adopt retired", b.run("adopt", "helm", "kiosk", "--as", "shop/kiosk").text())
	if a := b.run("delete", "shop/kiosk"); a.code != 0 {
		t.Error(a.text())
	}
}

// runWith runs a command, and does something before each of its requests.
func (b *bed) runWith(before func(r *http.Request, body string), arguments ...string) answer {
	b.Helper()
	wrap := func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			var body []byte
			if r.Body != nil {
				var err error
				if body, err = io.ReadAll(r.Body); err != nil {
					return nil, err
				}
				r = r.Clone(r.Context())
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			before(r, string(body))
			return next.RoundTrip(r)
		})
	}
	return b.runThrough(b.Context(), wrap, arguments...)
}

// racesWithAdopt plays what others do between two requests of adopt.
func (b *bed) racesWithAdopt(t *testing.T) {
	done, lists := false, 0
	play := func(name, what string, before func(b *bed, r *http.Request, body string), then func(b *bed, a answer)) {
		t.Run(what, func(t *testing.T) {
			b := b.in(t)
			objects := b.helmInstalls(name, 2)
			was := b.states(objects)
			b.learnsThePromotion(name)
			done, lists = false, 0
			then(b, b.runWith(func(r *http.Request, body string) { before(b, r, body) }, "adopt", "helm", name, "--as", "shop/"+name, "--retire"))
			for key, uid := range b.uids(objects) {
				if was[key].(map[string]any)["metadata"].(map[string]any)["uid"] != uid {
					t.Errorf("%s was deleted", key)
				}
			}
			if a := b.run("delete", "shop/"+name); a.code != 0 {
				t.Error(a.text())
			}
			b.removes(name, objects)
		})
	}
	once := func(condition bool) bool {
		if !condition || done {
			return false
		}
		done = true
		return true
	}

	play("race1", "the operator begins before the deletion of the component", func(b *bed, r *http.Request, _ string) {
		if once(strings.HasSuffix(r.URL.Path, "/secrets")) { // before the operator is asked
			b.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "race1-settings"}}, `{"data":{"more":"by hand"}}`)
		}
		if r.Method == http.MethodDelete && b.stateIs("race1", v1alpha1.StateSuspended) == nil {
			b.patch(shops.New("race1"), `{"metadata":{"annotations":{"shop.example.com/suspend":null}}}`)
			b.untilReady("race1")
		}
	}, func(b *bed, a answer) {
		if a.code != CodeTrouble || !strings.Contains(a.err, "Shop market/race1 is not deleted again: it is not suspended, and its operator may have begun to apply it") {
			b.Error(a.text())
		}
	})

	play("race2", "the component is changed after its plan", func(b *bed, r *http.Request, body string) {
		if once(r.Method == http.MethodPatch && strings.Contains(body, `"shop.example.com/suspend":null`)) {
			b.patch(shops.New("race2"), `{"spec":{"greeting":"Hello"}}`)
		}
	}, func(b *bed, a answer) {
		if a.code != CodeTrouble || !strings.Contains(a.err, "Shop market/race2 was changed after its plan, and stays suspended") || b.stateIs("race2", v1alpha1.StateSuspended) != nil {
			b.Error(a.text())
		}
		golden(b.T, "adopt changed", b.run("adopt", "helm", "race2", "--as", "shop/race2").text())
	})

	play("race3", "Helm upgrades before the records are deleted", func(b *bed, r *http.Request, _ string) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/secrets") && strings.Contains(r.URL.RawQuery, "owner%3Dhelm") {
			if lists++; lists == 2 {
				b.helmRecords("race3", "deployed", 3, "", nil)
			}
		}
	}, func(b *bed, a answer) {
		if a.code != CodeTrouble || !strings.Contains(a.err, "Helm has made revision 3 of Helm release market/race3 meanwhile, so its records stay") {
			b.Error(a.text())
		}
		if records := b.recordsOf("race3"); !slices.Equal(records, []string{"2 deployed", "3 deployed"}) {
			b.Errorf("records %v", records)
		}
		golden(b.T, "adopt existing", b.run("adopt", "helm", "race3", "--as", "shop/race3").text())
	})

	play("race4", "Helm upgrades while the records are deleted", func(b *bed, r *http.Request, _ string) {
		if once(r.Method == http.MethodDelete) {
			b.helmRecords("race4", "deployed", 3, "", nil)
		}
	}, func(b *bed, a answer) {
		if records := b.recordsOf("race4"); a.code != 0 || !slices.Equal(records, []string{"3 deployed"}) {
			b.Errorf("records %v; %s", records, a.text())
		}
	})
}

func (b *bed) uids(objects []*unstructured.Unstructured) map[string]string {
	b.Helper()
	all := map[string]string{}
	for _, object := range objects {
		live := b.live(object)
		all[live.GetKind()+" "+live.GetName()] = string(live.GetUID())
	}
	return all
}

func TestAPlanThatLeavesSomethingOutIsNotTaken(t *testing.T) {
	plan := report.Plan{Incomplete: []string{"a hook"}, MissingRights: "rules: []", Waiting: []report.Wait{{Key: report.Key{Kind: "ConfigMap", Namespace: "market", Name: "a"}, Message: "cannot be read"}}}
	check.Equal(t, []string{"a hook", "the operator lacks rights", "ConfigMap market/a: cannot be read"}, beyondOwnership(plan))
	object := func(kind, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
	}
	release := &helmrelease.Release{Reference: helmrelease.Reference{Namespace: "market", Name: "corner", Revision: 1},
		Objects: []*unstructured.Unstructured{object("ConfigMap", "a"), object("ConfigMap", "b"), object("Namespace", "c")}}
	changes := []report.PlannedChange{
		{Key: report.Key{Kind: "ConfigMap", Namespace: "market", Name: "a"}}, {Key: report.Key{Kind: "ConfigMap", Namespace: "other", Name: "b"}},
		{Key: report.Key{Kind: "Namespace", Name: "c"}},
	}
	check.Equal(t, []string{"ConfigMap b is an object of the release, and none of the component"}, leftOut(changes, release))
	if left := leftOut(nil, &helmrelease.Release{}); len(left) != 1 {
		t.Errorf("of an empty release: %q", left)
	}
}

func TestAReleaseThatFluxDeliversIsTakenOverWhileFluxIsSuspended(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetLabels(map[string]string{"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "flux-system"})
	ofFlux := &helmrelease.Release{Objects: []*unstructured.Unstructured{object}}
	type get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error
	found := func(spec map[string]any) get {
		return func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			check.SameNamed(t, "it reads", client.ObjectKey{Namespace: "flux-system", Name: "shop"}, key)
			into.(*unstructured.Unstructured).Object["spec"] = spec
			return nil
		}
	}
	fails := func(err error) get {
		return func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		}
	}
	for _, test := range []struct {
		name    string
		release *helmrelease.Release
		get     get
		want    string
	}{
		{"a release of Helm", &helmrelease.Release{}, fails(errors.New("it is read")), ""},
		{"suspended", ofFlux, found(map[string]any{"suspend": true}), ""},
		{"not suspended", ofFlux, found(map[string]any{"suspend": false}), "is not suspended: set its spec.suspend to true first"},
		{"never suspended", ofFlux, found(nil), "HelmRelease flux-system/shop of Flux delivers"},
		{"gone", ofFlux, fails(apierrors.NewNotFound(schema.GroupResource{}, "shop")), ""},
		{"without Flux", ofFlux, fails(&meta.NoKindMatchError{}), ""},
		{"not to be read", ofFlux, fails(errors.New("forbidden")), "forbidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: test.get}).Build()
			err := fluxIsSuspended(t.Context(), c, test.release)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
