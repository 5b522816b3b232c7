// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
)

// On installs the definition of the widget, changed if change is not nil, and
// returns a client. At the end of the test the conditions of the widgets are checked, and the
// definition goes with all of them, so tests that use it cannot run at the same time.
func On(t *testing.T, e *env.Environment, change func(*apiextensionsv1.CustomResourceDefinition)) client.Client {
	t.Helper()
	crd := widget.CRD()
	if change != nil {
		change(crd)
	}
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}
	if _, err := envtest.InstallCRDs(e.Config(), options); err != nil {
		t.Fatal(err)
	}
	scheme := widget.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(e.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		uninstall(ctx, t, c)
	})
	return c
}

// uninstall waits for the end, which comes a while after the deletion was
// accepted: the next test may want the same definition in another form.
func uninstall(ctx context.Context, t *testing.T, c client.Client) {
	widgets := &widget.List{}
	if err := c.List(ctx, widgets); err != nil {
		t.Error(err)
	}
	for i := range widgets.Items {
		w := &widgets.Items[i]
		if conditions.Has(w, v1alpha1.ConditionReady) { // it was reconciled
			conditionstest.Check(t, w)
		}
		w.Finalizers = nil
		if err := client.IgnoreNotFound(c.Update(ctx, w)); err != nil {
			t.Error(err)
		}
	}
	for {
		err := c.Delete(ctx, widget.CRD())
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			t.Error(err)
		}
		select {
		case <-ctx.Done():
			t.Error("the definition of the widget does not go")
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}
