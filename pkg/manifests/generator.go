// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/types"
)

// Generator renders the dependent objects of a component.
//
// A generator may also implement types.SchemeBuilder, if the client of the
// target cluster has to know the types of its objects. An operator also calls these methods of a generator that has
// them:
//   - Digest() string returns a short text about the sources of the generator: files and options. It is the same in each
//     process as long as these are; Go functions among the options count only by being there. With another digest, an operator
//     starts a new revision of each component for which it renders something else. The status of components has
//     it, so no secret may follow from it. Transformers may have the method, too.
//   - Source() v1alpha1.Source names the source, without rendering, for people: the name and the version of a
//     chart, for example. It stands in the status of components.
//   - DefaultValues() map[string]any returns a copy of the defaults for the parameters, as a chart has them in the file values.yaml.
//   - SharedTypes() []types.SharedType returns definitions that are the same for all components, as a chart has them in the
//     folder crds. They belong to the reconciler and to no component. Whether a component needs one depends on its
//     rendered objects. The caller does not change them.
type Generator interface {
	// Generate returns the objects for the parameters. Namespace and name are the deployment's; the
	// caller puts namespaced objects without a namespace into this namespace. The parameters must
	// not be changed. The objects belong to the caller, which may change them.
	Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error)
}

// GeneratorFunc makes a function a Generator.
type GeneratorFunc func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error)

// Generate calls the function.
func (f GeneratorFunc) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if f == nil {
		return nil, renders.ErrNilGenerator
	}
	return f(ctx, namespace, name, parameters)
}

// For makes a function a Generator that gets the spec of a component as its own type, such as *ShopSpec: the value that the
// component passes to component.ParametersOf, or that its GetSpec returns. It must not be changed. The error of other
// parameters, such as the map of a parameter transformer, names both types.
func For[Spec any](generate func(ctx context.Context, namespace, name string, spec Spec) ([]client.Object, error)) Generator {
	if generate == nil {
		return GeneratorFunc(nil)
	}
	return GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		spec, ok := renders.SpecOf(parameters).(Spec)
		if !ok {
			return nil, fmt.Errorf("the parameters are a %T, want a %s", renders.SpecOf(parameters), reflect.TypeFor[Spec]())
		}
		return generate(ctx, namespace, name, spec)
	})
}

const (
	// maxObjects and maxObjectBytes limit the objects that a generator returns: their number
	// and their size as JSON, all together. A value that is shared by many
	// objects takes little memory only until it is encoded.
	//
	// Unit: objects
	// Limit: the objects that a generator returns; more are an error.
	maxObjects = 100_000
	// Limit: all objects that a generator returns, as JSON; more is an error.
	maxObjectBytes = 256 << 20
)

type measuredKey struct{}

// Generate calls the generator and converts everything it does wrong to an
// error: a nil generator, a panic (types.PanicError),
// nil objects, more than 100,000 objects, more than 256 MiB.
func Generate(ctx context.Context, g Generator, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if renders.IsNil(g) {
		return nil, renders.ErrNilGenerator
	}
	// A generator that calls other generators is measured once.
	inner := context.WithValue(ctx, measuredKey{}, true)
	outermost := ctx.Value(measuredKey{}) == nil
	var objects []client.Object
	err := guard.Call(func() (err error) {
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

// checkAmount refuses objects that would take all memory.
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
		if renders.IsNil(object) {
			errs = append(errs, fmt.Errorf("object %d of %d is nil (%T)", i+1, len(objects), object))
		}
	}
	return errors.Join(errs...)
}

// Decryptor decrypts the files of a generator when they are read. It gets every file and returns a
// file that is not encrypted as it is.
type Decryptor interface {
	// Decrypt returns the plain text of the file with this path, which is for
	// picking keys and for errors. The input must not be changed. The error must
	// not contain plain text: it ends up in the status of components.
	Decrypt(input []byte, path string) ([]byte, error)
}

// DecryptorFunc makes a function a Decryptor.
type DecryptorFunc func(input []byte, path string) ([]byte, error)

// Decrypt calls the function.
func (f DecryptorFunc) Decrypt(input []byte, path string) ([]byte, error) { return f(input, path) }
