// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/types"
)

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
}

// WithParameterTransformer makes a ParameterTransformer an argument of Transform.
func WithParameterTransformer(t ParameterTransformer) Transformer { return Transformer{parameters: t} }

// WithObjectTransformer makes an ObjectTransformer an argument of Transform.
func WithObjectTransformer(t ObjectTransformer) Transformer { return Transformer{objects: t} }
