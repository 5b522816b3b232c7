// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

// TestABreakingChangeOfADefinitionIsRefused changes a definition under each of the update policies: first so that
// nothing breaks, then so that something does.
func TestABreakingChangeOfADefinitionIsRefused(t *testing.T) {
	for plural, policy := range map[string]reconciler.UpdatePolicy{
		"cogs": reconciler.UpdatePolicyReplace, "gears": v1alpha1.UpdatePolicySsaMerge, "racks": v1alpha1.UpdatePolicySsaOverride,
	} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBench(t)
			b.interpose(t, reconciler.ReconcilerOptions{UpdatePolicy: &policy})
			kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
			withFields := func(fields map[string]any, annotations map[string]string) *unstructured.Unstructured {
				crd := definition(plural, kind)
				version := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
				version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": map[string]any{"type": "object", "properties": fields},
				}}}
				crd.SetAnnotations(annotations)
				return crd
			}
			text, number := map[string]any{"type": "string"}, map[string]any{"type": "integer"}
			first := withFields(map[string]any{"size": number}, nil)
			b.installed(first)
			b.traffic.requests("")
			b.mustApply(withFields(map[string]any{"size": number, "name": text}, nil))
			others := func(request string) bool { return !strings.HasSuffix(request, "/"+first.GetName()) }
			if reads := slices.DeleteFunc(b.traffic.requests("GET "), others); len(reads) > 2 {
				t.Errorf("%d reads of the definition for one harmless change", len(reads))
			}

			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(first.GroupVersionKind())
			version := func() string {
				t.Helper()
				check.NoError(t, b.Get(t.Context(), client.ObjectKeyFromObject(first), live))
				return live.GetResourceVersion()
			}
			before := version()
			breaking := withFields(map[string]any{"size": text}, nil)
			const want = "version v1: .spec.name: the field is removed (FieldRemoved); version v1: .spec.size: the type changes from integer to string (TypeChanged)"
			plan := b.foresee(b.request(breaking))
			if len(plan.Changes) != 1 || plan.Changes[0].Class != report.ChangeRefused || !strings.Contains(plan.Changes[0].Message, want) {
				t.Errorf("got the plan %+v", plan)
			}
			_, err := b.apply(breaking, instance(kind, "one"), config("beside", "1"))
			refused, ok := errors.AsType[*reconciler.BreakingChangeError](err)
			if !ok || !strings.Contains(refused.Error(), want) || !strings.Contains(refused.Error(), `annotation engine.corbel.run/allow-breaking-changes: "true"`) {
				t.Errorf("got %v", err)
			}
			check.SameNamed(t, "the definition was written", before, version())
			if b.stands(b.in(instance(kind, "one"))) {
				t.Error("an instance was written after a definition that was refused")
			}

			b.mustApply(withFields(map[string]any{"size": text}, map[string]string{engineName + "/" + v1alpha1.AnnotationAllowBreakingChanges: "true"}))
			if version() == before {
				t.Error("the definition was not written, although the annotation allows it")
			}
		})
	}
}
