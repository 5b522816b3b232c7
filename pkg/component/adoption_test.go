// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

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
