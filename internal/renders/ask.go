// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package renders

import (
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/types"
)

// ErrNilGenerator is the mistake of a generator that is nil.
var ErrNilGenerator = errors.New("the generator is nil")

// Digest returns the digest of a generator or a transformer; it is empty if there is none. manifests.Join and
// manifests.Transform have one digest for all their generators and transformers that have one, and manifests.Isolated
// has the digest of its generator.
func Digest(of any) string {
	return ask(of, func(of interface{ Digest() string }) string { return of.Digest() })
}

// LacksDigest reports whether a generator, or a part of it that is no option, has no digest.
func LacksDigest(generator any) bool {
	if composite, ok := generator.(interface{ LacksDigest() bool }); ok {
		return composite.LacksDigest()
	}
	return Digest(generator) == ""
}

// Source returns the source of a generator; it is empty if the generator does not report it.
// manifests.Transform and manifests.Isolated report the source of the generator that they are made from, and manifests.Join
// reports the source of the first generator that has one.
func Source(generator any) v1alpha1.Source {
	return ask(generator, func(generator interface{ Source() v1alpha1.Source }) v1alpha1.Source { return generator.Source() })
}

// DefaultValues returns the defaults of a generator for its parameters; nil if it reports none. manifests.Transform and
// manifests.Isolated have the defaults of their generator.
func DefaultValues(generator any) map[string]any {
	return ask(generator, func(generator interface{ DefaultValues() map[string]any }) map[string]any {
		return generator.DefaultValues()
	})
}

// SharedTypes returns the definitions of a generator that all components share; nil if it reports none. manifests.Join and
// manifests.Isolated report the definitions of the generators that they are made from; of two with one name the first counts.
// manifests.Transform changes the definitions by its object transformers, which are called without a namespace and a name: if
// their results depend on these, components do not share the definition.
func SharedTypes(generator any) []types.SharedType {
	return ask(generator, func(generator interface{ SharedTypes() []types.SharedType }) []types.SharedType {
		return generator.SharedTypes()
	})
}

// Validate finds mistakes in how a generator was put together, without calling
// it: nil generators and nil transformers, also inside manifests.Join and manifests.Transform.
func Validate(generator any) error {
	if IsNil(generator) {
		return ErrNilGenerator
	}
	if composite, ok := generator.(interface{ ValidateParts() error }); ok {
		return composite.ValidateParts()
	}
	return nil
}

// AddToScheme adds the types that the generator brings to the scheme, if it is
// a types.SchemeBuilder; otherwise it does nothing. manifests.Join and manifests.Transform forward
// to the generators they are made from.
func AddToScheme(generator any, scheme *runtime.Scheme) error {
	if IsNil(generator) {
		return ErrNilGenerator
	}
	if builder, ok := generator.(types.SchemeBuilder); ok {
		return guard.Call(func() error { return builder.AddToScheme(scheme) })
	}
	return nil
}

// ask calls a method that a generator or a transformer may have. The answer is empty if there is no such method or it
// panics.
func ask[With, Answer any](of any, call func(With) Answer) (answer Answer) {
	with, ok := of.(With)
	if !ok || IsNil(of) || guard.Call(func() error { answer = call(with); return nil }) != nil {
		var none Answer
		return none
	}
	return answer
}

// SpecOf returns the spec that component.ParametersOf made the parameters from. Other parameters are the spec themselves.
func SpecOf(parameters types.Unstructurable) any {
	if made, ok := parameters.(interface{ Unwrap() any }); ok {
		return made.Unwrap()
	}
	return parameters
}

// IsNil reports whether v is nil or an interface around a nil pointer or function.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch value := reflect.ValueOf(v); value.Kind() {
	case reflect.Pointer, reflect.Func:
		return value.IsNil()
	default:
		return false
	}
}
