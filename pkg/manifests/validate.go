// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/pkg/types"
)

// Validate finds mistakes in how a generator was put together, without calling
// it: nil generators and nil transformers, also inside Join and Transform.
func Validate(g Generator) error {
	if isNil(g) {
		return errNilGenerator
	}
	if composite, ok := g.(interface{ validate() error }); ok {
		return composite.validate()
	}
	return nil
}

// AddToScheme adds the types that the generator brings to the scheme, if it is
// a types.SchemeBuilder; otherwise it does nothing. Join and Transform forward
// to the generators they are made from.
func AddToScheme(g Generator, scheme *runtime.Scheme) error {
	if isNil(g) {
		return errNilGenerator
	}
	if builder, ok := g.(types.SchemeBuilder); ok {
		return protect(func() error { return builder.AddToScheme(scheme) })
	}
	return nil
}
