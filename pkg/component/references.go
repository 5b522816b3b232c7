// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/types"
)

// A spec may hold references: values of the types ConfigMapReference,
// ConfigMapKeyReference, SecretReference and SecretKeyReference, and of any type
// that implements Reference. They are found wherever they are: in nested and embedded
// structs, behind pointers, in slices and maps; not in unexported fields, nor in those
// with the tag `json:"-"`. A reference that is optional is a pointer that may be nil.
//
// In every pass, before hooks and generator run, references are loaded from the
// namespace of the component with the identity of the operator, past all caches.
// The spec that hooks and generator get has them loaded. What was loaded is part of
// the digest of the component and is never written into it.
//
// While something that is referenced does not exist, the component waits, and its
// condition names everything that is missing. When the component is being deleted,
// it does not: hooks find the reference not loaded then.
//
// Tags of the field that holds a reference, or a slice or map of them, say more:
//
//   - fallbackKeys:"a,b": the keys to try, in this order, if the reference names none.
//   - notFoundPolicy:"waitOnDeletion": the deletion waits, too. The default is "ignoreOnDeletion".
//   - digest:"ignore": what is loaded is not part of the digest of the component. It is for
//     credentials of the operator itself, whose rotation is no change of the component.
const (
	fallbackKeysTag   = "fallbackKeys"
	notFoundPolicyTag = "notFoundPolicy"
	digestTag         = "digest"

	ignoreOnDeletion = "ignoreOnDeletion"
	waitOnDeletion   = "waitOnDeletion"
	ignoreInDigest   = "ignore"
)

// Reference is a reference of a component's own making, for components of type T.
// Pointers to values in the spec that implement it are loaded like the
// references of this package.
type Reference[T Component] interface {
	// Load loads what is referenced and keeps it in the receiver; it changes
	// nothing else. The component has the references of this package loaded
	// already. The client has the identity of the operator and reads from the server.
	//
	// A NotFound error of the API server makes the component wait, or is ignored if the
	// component is being deleted. What is kept has to survive DeepCopy, and its
	// fields need the tag `json:"-"`, also if they are not exported.
	Load(ctx context.Context, clnt client.Client, component T) error
	// Digest returns another value when what was loaded is another content.
	Digest() string
}

// ConfigMapReference names a config map in the namespace of the component.
//
// +kubebuilder:object:generate=true
type ConfigMapReference struct {
	// Name is the name of the config map.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	data map[string]string `json:"-"` // nil: not loaded
}

// Data returns the content of the config map, which must not be changed; nil if
// the reference is not loaded.
func (r *ConfigMapReference) Data() map[string]string {
	if r == nil {
		return nil
	}
	return r.data
}

// ConfigMapKeyReference names a key of a config map in the namespace of the component.
//
// +kubebuilder:object:generate=true
type ConfigMapKeyReference struct {
	// Name is the name of the config map.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key in the config map; by default the first that exists of those that the operator expects.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	value *string `json:"-"` // nil: not loaded
}

// Value returns the value of the key; it is empty if the reference is not loaded.
func (r *ConfigMapKeyReference) Value() string {
	if r == nil || r.value == nil {
		return ""
	}
	return *r.value
}

// SecretReference names a secret in the namespace of the component.
//
// +kubebuilder:object:generate=true
type SecretReference struct {
	// Name is the name of the secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	data map[string][]byte `json:"-"` // nil: not loaded
}

// Data returns the content of the secret, which must not be changed; nil if the
// reference is not loaded.
func (r *SecretReference) Data() map[string][]byte {
	if r == nil {
		return nil
	}
	return r.data
}

// SecretKeyReference names a key of a secret in the namespace of the component.
//
// +kubebuilder:object:generate=true
type SecretKeyReference struct {
	// Name is the name of the secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key in the secret; by default the first that exists of those that the operator expects.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	value []byte `json:"-"` // nil: not loaded
}

// Value returns the value of the key, which must not be changed; nil if the
// reference is not loaded.
func (r *SecretKeyReference) Value() []byte {
	if r == nil {
		return nil
	}
	return r.value
}

// loadables are the references of this package. They are recognised by their very
// type: a struct that embeds one has its methods, too.
var loadables = []reflect.Type{
	reflect.TypeFor[ConfigMapReference](), reflect.TypeFor[ConfigMapKeyReference](),
	reflect.TypeFor[SecretReference](), reflect.TypeFor[SecretKeyReference](),
}

func isLoadable(t reflect.Type) bool {
	for _, known := range loadables {
		if t == known {
			return true
		}
	}
	return false
}

// isReference tells whether pointers to values of the type are references.
func (f *finder) isReference(t reflect.Type) bool {
	return isLoadable(t) || t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(f.custom)
}

// durationType is looked for as well: a duration may have been decoded from what is none.
var durationType = reflect.TypeFor[types.Duration]()

// isWanted tells whether values of the type are what a search is for.
func (f *finder) isWanted(t reflect.Type) bool { return t == durationType || f.isReference(t) }

// mayHold tells whether values of the type can hold what is wanted, so that large
// parts of a spec need not be looked at.
func (f *finder) mayHold(t reflect.Type) bool {
	if known, ok := f.holds.Load(t); ok {
		return known.(bool)
	}
	holds := false
	f.visit(t, map[reflect.Type]bool{}, func(inner reflect.Type, _ *reflect.StructField) {
		holds = holds || inner.Kind() == reflect.Interface || f.isWanted(inner)
	})
	f.holds.Store(t, holds)
	return holds
}

// visit calls see for every type that values of a type can hold, and the field that
// holds it, if it is one.
func (f *finder) visit(t reflect.Type, seen map[reflect.Type]bool, see func(reflect.Type, *reflect.StructField)) {
	if seen[t] {
		return
	}
	seen[t] = true
	see(t, nil)
	if f.isWanted(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		f.visit(t.Elem(), seen, see)
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if _, serialised := jsonName(field); serialised {
				see(field.Type, &field)
				f.visit(field.Type, seen, see)
			}
		}
	}
}

// check reports the mistakes of the author of the type of the spec.
func (f *finder) check(spec any) error {
	t := reflect.TypeOf(spec)
	var mistakes []error
	f.visit(t, map[reflect.Type]bool{}, func(inner reflect.Type, field *reflect.StructField) {
		if t.Kind() == reflect.Struct && f.isReference(inner) && len(mistakes) == 0 {
			mistakes = append(mistakes, fmt.Errorf("GetSpec must return a pointer, because the spec can hold a %s", inner))
		}
		if field == nil {
			return
		}
		switch policy := field.Tag.Get(notFoundPolicyTag); policy {
		case "", ignoreOnDeletion, waitOnDeletion:
		default:
			mistakes = append(mistakes, fmt.Errorf("field %s of the spec: tag %s is %q, must be %s or %s",
				field.Name, notFoundPolicyTag, policy, ignoreOnDeletion, waitOnDeletion))
		}
		if value := field.Tag.Get(digestTag); value != "" && value != ignoreInDigest {
			mistakes = append(mistakes, fmt.Errorf("field %s of the spec: tag %s is %q, must be %s", field.Name, digestTag, value, ignoreInDigest))
		}
		for _, key := range (found{tag: field.Tag}).fallbackKeys() {
			if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
				mistakes = append(mistakes, fmt.Errorf("field %s of the spec: tag %s has the key %q: %s",
					field.Name, fallbackKeysTag, key, strings.Join(problems, ", ")))
			}
		}
	})
	return errors.Join(mistakes...)
}
