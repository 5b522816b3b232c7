// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/types"
)

// Generator renders the dependent objects of a component.
//
// A generator may also implement types.SchemeBuilder, if the client of the
// target cluster has to know the types of its objects.
type Generator interface {
	// Generate returns the objects for the parameters. Namespace and name are
	// those of the deployment; objects without a namespace are put into this
	// namespace by the caller, if they are namespaced. The parameters must not
	// be changed. The objects belong to the caller, who may change them.
	Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error)
}

// GeneratorFunc makes a function a Generator.
type GeneratorFunc func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error)

// Generate calls the function.
func (f GeneratorFunc) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if f == nil {
		return nil, errNilGenerator
	}
	return f(ctx, namespace, name, parameters)
}

var errNilGenerator = errors.New("the generator is nil")

// Generate calls the generator and turns everything it does wrong into an
// error: a nil generator, a panic (PanicError), an early end of its goroutine,
// nil objects.
func Generate(ctx context.Context, g Generator, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if isNil(g) {
		return nil, errNilGenerator
	}
	var objects []client.Object
	err := protect(func() (err error) {
		objects, err = g.Generate(ctx, namespace, name, parameters)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := checkObjects(objects); err != nil {
		return nil, err
	}
	return objects, nil
}

// checkObjects refuses nil objects; an interface that holds a nil pointer is
// one, too, and would panic on first use.
func checkObjects(objects []client.Object) error {
	var errs []error
	for i, object := range objects {
		if isNil(object) {
			errs = append(errs, fmt.Errorf("object %d of %d is nil (%T)", i+1, len(objects), object))
		}
	}
	return errors.Join(errs...)
}
