// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/result"
)

func TestAbandon(t *testing.T) {
	const annotation = "test.corbel.run/abandon"
	several := v1alpha1.Inventory{Format: 1, Target: "far", Items: []v1alpha1.InventoryItem{
		{Kind: "ConfigMap", Version: "v1", Namespace: "shop", Name: "a"}, {Kind: "Job", Group: "batch", Version: "v1", Namespace: "shop", Name: "done", Phase: vocabulary.PhaseCompleted},
		{Kind: "Deployment", Group: "apps", Version: "v1", Namespace: "shop", Name: "b"}, {Kind: "Namespace", Version: "v1", Name: "c"},
		{Kind: "ConfigMap", Version: "v1", Name: "taken", Phase: vocabulary.PhaseReleased}, {Kind: "Secret", Version: "v1", Namespace: "shop", Name: "d"},
	}}
	tests := []struct {
		name      string
		value     string
		inventory v1alpha1.Inventory
		done      bool
		event     string
	}{
		{"true", "true", several, true, "Warning|Abandoned|Delete|orphaned 4 objects in the cluster far: ConfigMap shop/a, Deployment.apps shop/b, Namespace c and 1 more"},
		{"with nothing left", "true", v1alpha1.Inventory{}, true, ""},
		{"false", "false", several, false, ""},
		{"a mistake", "yes", several, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := &fakeEngine{err: errors.New("no")}
			h, log := testHandler(t, engine)
			h.targets = &fakeTargets{err: target.ErrLocal}
			h.code.hooks[postDelete] = hooksOf(func(context.Context, client.Client, *widget) error { return errors.New("a hook ran") })
			obj := deletedWidget(test.inventory)
			obj.Annotations = map[string]string{annotation: test.value}
			if h.isAbandoned(obj) != test.done {
				t.Errorf("detached: %t", h.isAbandoned(obj))
			}
			if test.done {
				if err := h.deletion.finalize(t.Context(), obj, noCommit); err != nil {
					t.Error(err)
				}
			} else if res, err := h.deletion.delete(t.Context(), obj, noCommit); res == result.Success && err == nil {
				t.Error("it was deleted")
			}
			if want := test.event; want != "" && !slices.Contains(log.lines, want) || want == "" && len(log.lines) > 0 {
				t.Errorf("events %q, want %q", log.lines, want)
			}
		})
	}
}

func TestARefusalToEraseTheSecretsHoldsNoDeletionUp(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct {
		answer error
		held   bool
	}{
		"a right is missing":       {answer: apierrors.NewForbidden(resource, "s", errors.New("no"))},
		"a webhook refuses":        {answer: apierrors.NewBadRequest("admission webhook \"w\" denied the request")},
		"there is none":            {answer: apierrors.NewNotFound(resource, "s")},
		"the server is overloaded": {answer: apierrors.NewTooManyRequests("later", 1), held: true},
		"the server fails":         {answer: apierrors.NewInternalError(errors.New("no")), held: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, log := testHandler(t, &fakeEngine{})
			refusing := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return nil
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					return test.answer
				},
			})
			h.revisions.Renderer.Revisions = revisions.NewStore(revisions.Options{Client: refusing, Name: h.self.Name})
			obj := deletedWidget(v1alpha1.Inventory{})
			obj.Status.Revision = 1
			if err := h.deletion.finalize(t.Context(), obj, noCommit); (err != nil) != test.held {
				t.Errorf("error %v", err)
			}
			said := len(log.lines) == 1 && strings.HasPrefix(log.lines[0], "Warning|SecretsLeft|Delete|")
			if said != (!test.held && !apierrors.IsNotFound(test.answer)) {
				t.Errorf("events %q", log.lines)
			}
		})
	}
}

func TestALiveComponentIsNotAbandoned(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	obj := newWidget()
	obj.Annotations = map[string]string{"test.corbel.run/abandon": "true"}
	reconcileOnce(t, h, obj)
	if len(engine.applied) != 1 {
		t.Error("the component is not reconciled")
	}
}
