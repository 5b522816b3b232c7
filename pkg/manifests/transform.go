// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/types"
)

// Transform returns a generator that changes the parameters and the objects of g. The parameter
// transformers run before g, the object transformers after it, each kind in the order given; the
// order between the kinds means nothing:
//
//	manifests.Transform(g,
//		manifests.WithParameterTransformer(defaults),
//		manifests.WithObjectTransformer(labels),
//	)
func Transform(g Generator, transformers ...Transformer) Generator {
	return &transformed{generator: g, transformers: append([]Transformer(nil), transformers...)}
}

type transformed struct {
	generator    Generator
	transformers []Transformer
	digest       string // of its author
}

func (t *transformed) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if err := t.ValidateParts(); err != nil {
		return nil, err
	}
	err := t.each(func(transformer Transformer) (err error) {
		if transformer.parameters != nil {
			parameters, err = transformParameters(transformer.parameters, namespace, name, parameters)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	objects, err := Generate(ctx, t.generator, namespace, name, parameters)
	if err != nil {
		return nil, err
	}
	return t.transformObjects(ctx, namespace, name, objects)
}

func (t *transformed) transformObjects(ctx context.Context, namespace, name string, objects []client.Object) ([]client.Object, error) {
	err := t.each(func(transformer Transformer) (err error) {
		if transformer.objects != nil {
			objects, err = TransformObjects(ctx, transformer.objects, namespace, name, objects)
		}
		return err
	})
	return objects, err // nil after an error
}

func (t *transformed) AddToScheme(scheme *runtime.Scheme) error {
	return renders.AddToScheme(t.generator, scheme)
}

// ValidateParts validates the generator, and finds transformers that are nil.
func (t *transformed) ValidateParts() error {
	errs := []error{renders.Validate(t.generator)}
	for i, transformer := range t.transformers {
		if renders.IsNil(transformer.parameters) && renders.IsNil(transformer.objects) {
			errs = append(errs, fmt.Errorf("transformer %d of %d is nil", i+1, len(t.transformers)))
		}
	}
	return errors.Join(errs...)
}

// each stops at the first error, as the next transformer needs the result of the previous one.
func (t *transformed) each(f func(Transformer) error) error {
	for i, transformer := range t.transformers {
		if err := f(transformer); err != nil {
			return fmt.Errorf("transformer %d of %d: %w", i+1, len(t.transformers), err)
		}
	}
	return nil
}

func transformParameters(t ParameterTransformer, namespace, name string, parameters types.Unstructurable) (types.Unstructurable, error) {
	err := guard.Call(func() (err error) {
		parameters, err = t.TransformParameters(namespace, name, parameters)
		return err
	})
	if err == nil && parameters == nil {
		err = errors.New("it returned nil parameters")
	}
	return parameters, err
}

// TransformObjects calls the transformer and converts everything it does wrong to an
// error, as Generate does: a nil transformer, a panic (types.PanicError),
// nil objects. Patches and expressions of package transform end when the
// context does. The origins of objects are kept.
func TransformObjects(ctx context.Context, t ObjectTransformer, namespace, name string, objects []client.Object) ([]client.Object, error) {
	if renders.IsNil(t) {
		return nil, errNilTransformer
	}
	transform := t.TransformObjects
	if interruptible, ok := t.(interruptibleTransformer); ok {
		transform = func(namespace, name string, objects []client.Object) ([]client.Object, error) {
			return interruptible.TransformObjectsContext(ctx, namespace, name, objects)
		}
	}
	var transformed []client.Object
	err := guard.Call(func() (err error) {
		// A transformer may encode the objects.
		if err := checkAmount(objects); err != nil {
			return err
		}
		transformed, err = transform(namespace, name, objects)
		return err
	})
	if err == nil {
		err = checkObjects(transformed)
	}
	if err != nil {
		return nil, err
	}
	renders.KeepOrigins(ctx, objects, transformed)
	return transformed, nil
}

// interruptibleTransformer is an ObjectTransformer that ends when the context does.
type interruptibleTransformer interface {
	TransformObjectsContext(ctx context.Context, namespace, name string, objects []client.Object) ([]client.Object, error)
}

var errNilTransformer = errors.New("the transformer is nil")

// ParameterTransformer changes the parameters before a generator gets them.
type ParameterTransformer interface {
	// TransformParameters returns the parameters to use in place of the given
	// ones, which it must not change. Namespace and name are those of the
	// deployment.
	TransformParameters(namespace, name string, parameters types.Unstructurable) (types.Unstructurable, error)
}

// ObjectTransformer changes the objects after a generator returned them.
type ObjectTransformer interface {
	// TransformObjects returns the objects to use in place of the given ones.
	// It may change the given ones, leave some out, and add others. Namespace
	// and name are those of the deployment.
	TransformObjects(namespace, name string, objects []client.Object) ([]client.Object, error)
}

// ParameterTransformerFunc makes a function a ParameterTransformer.
type ParameterTransformerFunc func(namespace, name string, parameters types.Unstructurable) (types.Unstructurable, error)

// TransformParameters calls the function.
func (f ParameterTransformerFunc) TransformParameters(namespace, name string, parameters types.Unstructurable) (types.Unstructurable, error) {
	return f(namespace, name, parameters)
}

// ObjectTransformerFunc makes a function an ObjectTransformer.
type ObjectTransformerFunc func(namespace, name string, objects []client.Object) ([]client.Object, error)

// TransformObjects calls the function.
func (f ObjectTransformerFunc) TransformObjects(namespace, name string, objects []client.Object) ([]client.Object, error) {
	return f(namespace, name, objects)
}

// Transformer is an argument of Transform; it holds a transformer of either
// kind. The zero value is a mistake that Transform reports.
type Transformer struct {
	parameters ParameterTransformer
	objects    ObjectTransformer
	digest     string
}

// WithParameterTransformer makes a ParameterTransformer an argument of Transform.
func WithParameterTransformer(t ParameterTransformer) Transformer { return Transformer{parameters: t} }

// WithObjectTransformer makes an ObjectTransformer an argument of Transform.
func WithObjectTransformer(t ObjectTransformer) Transformer { return Transformer{objects: t} }
