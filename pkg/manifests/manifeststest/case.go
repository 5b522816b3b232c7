// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest

import (
	"cmp"
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/untyped"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// Case is a generator with everything that it is called with.
type Case struct {
	// Generator is the tested generator.
	Generator manifests.Generator
	// Context is handed to the generator; use it for data that generators find there, such as a
	// client (manifests.Context) or the revision. By default it is the context of the test.
	Context context.Context
	// Namespace and Name are those of the deployment.
	Namespace, Name string
	// Parameters are usually the spec of a component.
	Parameters types.Unstructurable
	// Scheme provides the kinds of typed objects that do not have theirs set. By default it is the
	// scheme of client-go, which knows the built-in kinds.
	Scheme *runtime.Scheme
}

// Render calls the generator once and returns the objects in their serialised form.
// It fails the test if the generator returns an error.
func (c Case) Render(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	objects, err := c.render(c.context(t))
	if err != nil {
		t.Fatalf("render: %v", err)
	}
	return objects
}

func (c Case) context(t testing.TB) context.Context {
	if c.Context != nil {
		return c.Context
	}
	return t.Context()
}

func (c Case) generate(ctx context.Context) ([]client.Object, error) {
	return manifests.Generate(ctx, c.Generator, c.Namespace, c.Name, c.Parameters)
}

func (c Case) render(ctx context.Context) ([]*unstructured.Unstructured, error) {
	rendered, err := c.generate(ctx)
	if err != nil {
		return nil, err
	}
	return c.convertAll(rendered)
}

func (c Case) convertAll(rendered []client.Object) ([]*unstructured.Unstructured, error) {
	return untyped.List(rendered, cmp.Or(c.Scheme, clientgoscheme.Scheme))
}

// content is a copy of the content of the parameters; nil if there are none.
func (c Case) content() map[string]any {
	if renders.IsNil(c.Parameters) {
		return nil
	}
	return c.Parameters.ToUnstructured()
}
