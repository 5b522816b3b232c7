// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
)

// undigested hides the digest of a generator.
type undigested struct{ manifests.Generator }

func TestTemplatesThatRenderTheSameStartNoRevision(t *testing.T) {
	templates := func(comment, value string) manifests.Generator {
		text := fmt.Sprintf(`{{- /* %s */ -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {%s/reconcile-policy: on-object-or-component-change}}
data: {value: %s, password: "{{ randAlphaNum 20 }}"}
`, comment, operatorName, value)
		return must(gotemplate.New(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, ".", gotemplate.Options{}))(t)
	}
	b := newBed(t, undigested{templates("first", "one")}, component.ReconcilerOptions{})
	start := func(generator manifests.Generator) {
		t.Helper()
		b.reconciler = component.NewReconciler[*widget.Widget](operatorName, generator, component.ReconcilerOptions{RequireApproval: true})
		b.check(b.reconciler.SetupWithManager(newManager(t, b.env, b.user)))
		b.resetRequests()
	}
	b.create(widget.Spec{})
	b.until(component.StateReady)
	b.reconcile()
	for _, upgrade := range []struct {
		what string
		manifests.Generator
	}{
		{"it has a digest", templates("first", "one")},
		{"another comment", templates("second", "one")},
		{"an option", manifests.WithDigest(templates("second", "one"), "2")},
	} {
		start(upgrade.Generator)
		for range 2 { // the comparison is on record at once
			w := b.until(component.StateReady)
			if w.Status.Revision != 1 || w.Status.Approval != nil || w.Status.ProcessingSince != nil {
				t.Errorf("%s: %+v", upgrade.what, w.Status)
			}
		}
		if diff := cmp.Diff([]string{"patch widgets/status main"}, b.writes()); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", upgrade.what, diff)
		}
	}

	start(templates("second", "two"))
	w := b.waiting(2)
	if value, _ := b.configMap("a"); value != "one" {
		t.Errorf("the value is %s", value)
	}
	b.annotate(map[string]string{operatorName + "/" + v1alpha1.AnnotationApprove: w.Status.Approval.Hash})
	b.untilRevision(2)
	if value, _ := b.configMap("a"); value != "two" {
		t.Errorf("the value is %s", value)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
}
