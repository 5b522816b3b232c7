// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/jsonsize"
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

const (
	// maxObjects and maxObjectBytes limit what a generator may return: the number of
	// objects and their size as JSON, all together. A value that is shared by many
	// objects takes little memory only until it is encoded.
	maxObjects     = 100_000
	maxObjectBytes = 256 << 20
)

// Generate calls the generator and turns everything it does wrong into an
// error: a nil generator, a panic (PanicError), an early end of its goroutine,
// nil objects, more than 100,000 objects, more than 256 MiB.
func Generate(ctx context.Context, g Generator, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if isNil(g) {
		return nil, errNilGenerator
	}
	// A generator that calls others is measured once.
	inner := context.WithValue(ctx, measuredKey, true)
	outermost := ctx.Value(measuredKey) == nil
	var objects []client.Object
	err := protect(func() (err error) {
		if objects, err = g.Generate(inner, namespace, name, parameters); err != nil {
			return err
		}
		if err := checkObjects(objects); err != nil || !outermost {
			return err
		}
		return checkAmount(objects)
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// checkAmount refuses what would take all memory.
func checkAmount(objects []client.Object) error {
	if len(objects) > maxObjects {
		return fmt.Errorf("there are %d objects; at most %d are accepted", len(objects), maxObjects)
	}
	total := 0
	for i, object := range objects {
		var content any = object
		if u, ok := object.(runtime.Unstructured); ok {
			content = u.UnstructuredContent()
		}
		size := jsonsize.Of(content, maxObjectBytes)
		if size > maxObjectBytes {
			return fmt.Errorf("object %d of %d (%T %s) has more than %d bytes, or is nested deeper than %d levels",
				i+1, len(objects), object, object.GetName(), maxObjectBytes, jsonsize.MaxDepth)
		}
		if total += size; total > maxObjectBytes {
			return fmt.Errorf("the %d objects have more than %d bytes together", len(objects), maxObjectBytes)
		}
	}
	return nil
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
