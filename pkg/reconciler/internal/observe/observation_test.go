// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
)

const ref = "example.com/Shop/shop/main/uid"

// metadata is an object with the given labels, annotations and managed fields.
func metadata(labels, annotations, managed string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: map, namespace: shop, labels: {` + labels + `}, annotations: {` + annotations + `}, managedFields: [` + managed + `]}}`
}

func TestOwnershipLabelsAndAnnotationsAreRead(t *testing.T) {
	const setByUs = `{manager: corbel, operation: Update, fieldsV1: {"f:metadata": {"f:annotations": {"f:meta.helm.sh/release-name": {}}}}}`
	observer := observerOn(targetOn(t, &rest.Config{Host: "http://127.0.0.1:1"}))
	for name, tc := range map[string]struct {
		live     string
		manifest string // empty: the object is not desired any more
		want     plan.Ownership
	}{
		"none": {live: metadata("", "", "")},
		"ours": {
			live: metadata(reconciler+"/owner-id: id", reconciler+"/owner: "+ref, "{manager: corbel, operation: Update}"),
			want: plan.Ownership{OwnerID: "id", Ref: plan.OwnerRef{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "main", UID: "uid"}},
		},
		"stripped, though written by us": {live: metadata("", "", "{manager: corbel, operation: Apply}")},
		"an owner that cannot be read": {
			live: metadata(reconciler+"/owner-id: id", reconciler+"/owner: nonsense", ""), want: plan.Ownership{OwnerID: "id"},
		},
		"Helm": {
			live: metadata("app.kubernetes.io/managed-by: Helm", "meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: shop", ""),
			want: plan.Ownership{OtherOwners: []string{"Helm release shop/web"}},
		},
		"labels that only describe": {live: metadata("app.kubernetes.io/managed-by: Helm, app.kubernetes.io/instance: web", "", "")},
		"Argo CD": {
			live: metadata("", "argocd.argoproj.io/tracking-id: 'web:/ConfigMap:shop/map'", ""),
			want: plan.Ownership{OtherOwners: []string{"Argo CD application web"}},
		},
		"Argo CD, and a name with colons": {
			live: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:web", annotations: {
				argocd.argoproj.io/tracking-id: "web:rbac.authorization.k8s.io/ClusterRole:shop/system:web"}}}`,
			want: plan.Ownership{OtherOwners: []string{"Argo CD application web"}},
		},
		"a copy of Argo CD's annotation": {live: metadata("", "argocd.argoproj.io/tracking-id: 'web:apps/Deployment:shop/web'", "")},
		"Flux, kapp and apply sets": {
			live: metadata("kustomize.toolkit.fluxcd.io/name: k, kustomize.toolkit.fluxcd.io/namespace: flux, helm.toolkit.fluxcd.io/name: h, kapp.k14s.io/app: '1', applyset.kubernetes.io/part-of: s", "config.k8s.io/owning-inventory: i", ""),
			want: plan.Ownership{OtherOwners: []string{"inventory i", "Flux Kustomization flux/k", "Flux HelmRelease h", "kapp application 1", "apply set s"}},
		},
		"a controller": {
			live: `{apiVersion: v1, kind: ConfigMap, metadata: {ownerReferences: [{kind: Pod, name: a, uid: "1"}, {kind: Deployment, name: web, uid: "2", controller: true}]}}`,
			want: plan.Ownership{Controller: plan.Controller{Kind: "Deployment", Name: "web", UID: "2"}},
		},
		"ownerReferences that no server would keep": {live: `{apiVersion: v1, kind: ConfigMap, metadata: {ownerReferences: ["x", {controller: 1}]}}`},
		"other reconcilers": {
			live: metadata("b.example.com/owner-id: x, a.example.com/owner-id: x, c.example.com/owner-id: ''", "b.example.com/owner: "+ref, ""),
			want: plan.Ownership{OtherOwners: []string{"an owner of a.example.com", "Shop shop/main of b.example.com"}, Marks: []plan.Mark{
				{Reconciler: "a.example.com", OwnerID: "x"},
				{Reconciler: "b.example.com", OwnerID: "x", Ref: plan.OwnerRef{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "main", UID: "uid"}},
			}},
		},
		"an ownership annotation that our manifest sets": {
			live:     metadata("a.example.com/owner-id: x", "meta.helm.sh/release-name: web", ""),
			manifest: metadata("a.example.com/owner-id: x", "meta.helm.sh/release-name: web", ""),
		},
		"an ownership annotation that our manifest sets to something else": {
			live:     metadata("", "meta.helm.sh/release-name: theirs", ""),
			manifest: metadata("", "meta.helm.sh/release-name: web", ""),
			want:     plan.Ownership{OtherOwners: []string{"Helm release theirs"}},
		},
		"an ownership annotation that our last manifest has set": {
			live: metadata("", "meta.helm.sh/release-name: web", setByUs), want: plan.Ownership{},
		},
		"an ownership annotation that another client put next to ours": {
			live: metadata("", "meta.helm.sh/release-name: web", strings.Replace(setByUs, "meta.helm.sh/release-name", "example.com/other", 1)),
			want: plan.Ownership{OtherOwners: []string{"Helm release web"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var d *plan.Desired
			if tc.manifest != "" {
				d = &plan.Desired{Manifest: parse(t, tc.manifest)}
			}
			live := parse(t, tc.live)
			untouched := live.DeepCopy()
			check.Equal(t, tc.want, observer.ObservationOf(t.Context(), live, d).Ownership)
			check.EqualNamed(t, "the object was changed", untouched, live)
		})
	}
}

func TestHintsAndExpressionsOfThePolicyDecideAboutReadiness(t *testing.T) {
	observer := observerOn(targetOn(t, &rest.Config{Host: "http://127.0.0.1:1"}))
	live := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: map, namespace: shop}, data: {ready: "no"}}`)
	for name, tc := range map[string]struct {
		policies policy.Set
		want     plan.Readiness
	}{
		"plain":                   {want: plan.Ready},
		"a condition is missing":  {policies: policy.Set{Hints: policy.StatusHints{Conditions: []string{"Done"}}}, want: plan.NotReady},
		"Ready is missing":        {policies: policy.Set{Hints: policy.StatusHints{ReadyCondition: true}}, want: plan.NotReady},
		"the expression is false": {policies: policy.Set{ReadyWhen: `self.data.ready == "yes"`}, want: plan.NotReady},
		"the expression is true":  {policies: policy.Set{ReadyWhen: `self.data.ready == "no"`}, want: plan.Ready},
		"the expression is wrong": {policies: policy.Set{ReadyWhen: `self.data.`}, want: plan.NotReady},
	} {
		got := observer.ObservationOf(t.Context(), live, &plan.Desired{Manifest: live, Policies: tc.policies})
		if got.Status.Readiness != tc.want || (got.Status.Message == "") != (tc.want == plan.Ready) {
			t.Errorf("%s: got %+v", name, got.Status)
		}
	}
}

func TestHowFarAJobHasComeThatHasATimeToLive(t *testing.T) {
	observer := observerOn(targetOn(t, &rest.Config{Host: "http://127.0.0.1:1"}))
	job := func(spec, conditions string) string {
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: shop}, spec: {" + spec + "}, status: {conditions: [" + conditions + "]}}"
	}
	const ttl = "ttlSecondsAfterFinished: 0"
	for name, tc := range map[string]struct {
		live string
		want plan.Finish
	}{
		"no time to live":      {job("", "{type: Complete, status: 'True'}"), plan.FinishUnknown},
		"null is none":         {job("ttlSecondsAfterFinished: null", "{type: Complete, status: 'True'}"), plan.FinishUnknown},
		"no Job":               {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, spec: {" + ttl + "}}", plan.FinishUnknown},
		"a Job of another API": {"{apiVersion: example.com/v1, kind: Job, metadata: {name: a}, spec: {" + ttl + "}}", plan.FinishUnknown},
		"it runs":              {job(ttl, ""), plan.Unfinished},
		"about to be complete": {job(ttl, "{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'False'}"), plan.Unfinished},
		"suspended":            {job(ttl, "{type: Suspended, status: 'True'}"), plan.Unfinished},
		"complete":             {job(ttl, "{type: Suspended, status: 'False'}, {type: Complete, status: 'True'}"), plan.FinishComplete},
		"failed":               {job(ttl, "{type: Failed, status: 'True'}"), plan.FinishFailed},
	} {
		live := parse(t, tc.live)
		always := &plan.Desired{Manifest: live, Policies: policy.Set{ReadyWhen: "true"}}
		check.SameNamed(t, name, tc.want, observer.ObservationOf(t.Context(), live, always).Finish)
		check.SameNamed(t, name+", in a watch", tc.want, observer.Reduce(live).Finish)
	}
}

func TestASentenceIsOneLineOfBoundedLength(t *testing.T) {
	for _, text := range []string{"", "short", "two\n\tlines  here", strings.Repeat("ä", 1000), strings.Repeat("x", 1_000_000), "\xff\xfe" + strings.Repeat("ü\n", 400)} {
		got := observe.Sentence(text)
		if len(got) > 500 || strings.ContainsAny(got, "\n\t") || !utf8.ValidString(got) || (got == "") != (text == "") {
			t.Errorf("%.20q: got %q", text, got)
		}
	}
	check.Same(t, "two lines here", observe.Sentence("two\n\tlines  here"))
}
