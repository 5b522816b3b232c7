// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// A spec may hold references: values of the types ConfigMapReference,
// ConfigMapKeyReference, SecretReference, SecretKeyReference and Requirement, and of any type
// that implements Reference. They are found wherever they are: in nested and embedded
// structs, behind pointers, in slices and maps; not in unexported fields, nor in those
// with the tag `json:"-"`. A reference that is optional is a pointer that may be nil.
//
// In every full reconcile, before hooks and generator run, references are loaded from the
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
//     credentials of the operator itself: their rotation is no change of the component.

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

	loaded map[string][]byte `json:"-"` // see references.Source
}

// Data returns the content of the config map, which must not be changed; nil if
// the reference is not loaded.
func (r *ConfigMapReference) Data() map[string]string {
	if r == nil || r.loaded == nil {
		return nil
	}
	data := make(map[string]string, len(r.loaded))
	for key, value := range r.loaded {
		data[key] = string(value)
	}
	return data
}

// ConfigMapKeyReference names a key of a config map in the namespace of the component.
//
// +kubebuilder:object:generate=true
type ConfigMapKeyReference struct {
	// Name is the name of the config map.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key in the config map.
	//
	// Default: the first that exists of the keys that the operator expects
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	loaded map[string][]byte `json:"-"` // see references.Source
}

// Value returns the value of the key; it is empty if the reference is not loaded.
func (r *ConfigMapKeyReference) Value() string {
	return string(ptr.Deref(r, ConfigMapKeyReference{}).loaded[""])
}

// SecretReference names a secret in the namespace of the component.
//
// +kubebuilder:object:generate=true
type SecretReference struct {
	// Name is the name of the secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	loaded map[string][]byte `json:"-"` // see references.Source
}

// Data returns the content of the secret, which must not be changed; nil if the
// reference is not loaded.
func (r *SecretReference) Data() map[string][]byte {
	return ptr.Deref(r, SecretReference{}).loaded
}

// SecretKeyReference names a key of a secret in the namespace of the component.
//
// +kubebuilder:object:generate=true
type SecretKeyReference struct {
	// Name is the name of the secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key in the secret.
	//
	// Default: the first that exists of the keys that the operator expects
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	loaded map[string][]byte `json:"-"` // see references.Source
}

// Value returns the value of the key, which must not be changed; nil if the
// reference is not loaded.
func (r *SecretKeyReference) Value() []byte {
	return ptr.Deref(r, SecretKeyReference{}).loaded[""]
}

// sourceOf describes a reference of this package, by a pointer to it.
func sourceOf(pointer any) *references.Source {
	switch r := pointer.(type) {
	case *ConfigMapReference:
		return &references.Source{Kind: references.ConfigMap, Name: r.Name, Whole: true, Loaded: &r.loaded}
	case *ConfigMapKeyReference:
		return &references.Source{Kind: references.ConfigMap, Name: r.Name, Key: r.Key, Loaded: &r.loaded}
	case *SecretReference:
		return &references.Source{Kind: references.Secret, Name: r.Name, Whole: true, Loaded: &r.loaded}
	case *SecretKeyReference:
		return &references.Source{Kind: references.Secret, Name: r.Name, Key: r.Key, Loaded: &r.loaded}
	case *Requirement:
		required := &references.Requirement{APIVersion: r.APIVersion, Namespace: r.Namespace, Condition: r.Condition, Inputs: r.Inputs}
		return &references.Source{Kind: r.Kind, Name: r.Name, Loaded: &r.loaded, Requirement: required}
	}
	return nil
}

// authorType is the type of component that the author of the operator has declared.
type authorType struct {
	new    func() Component
	finder *references.Finder
	// isCustom reports whether a reference is of the author's own making; load loads such a reference.
	isCustom func(references.Found) bool
	load     func(ctx context.Context, clnt client.Client, reference references.Found, component Component) error
}

func authorTypeOf[T Component]() authorType {
	return authorType{
		new:    func() Component { return newComponent[T]() },
		finder: finderFor[T](),
		isCustom: func(found references.Found) bool {
			_, custom := found.Pointer.(Reference[T])
			return custom
		},
		load: func(ctx context.Context, clnt client.Client, reference references.Found, component Component) error {
			return reference.Pointer.(Reference[T]).Load(ctx, clnt, component.(T))
		},
	}
}

// finderFor returns a finder for the references in specs of components of type T.
func finderFor[T Component]() *references.Finder {
	return &references.Finder{
		Types: []reflect.Type{
			reflect.TypeFor[ConfigMapReference](), reflect.TypeFor[ConfigMapKeyReference](),
			reflect.TypeFor[SecretReference](), reflect.TypeFor[SecretKeyReference](), reflect.TypeFor[Requirement](),
		},
		Source: sourceOf,
		Custom: reflect.TypeFor[Reference[T]](),
	}
}

// loadReferences loads what the spec refers to, for a reconcile that renders from it: from
// then on, only newer versions requeue the component. So do changes of the Secret of its outputs.
func (o *opener) loadReferences(ctx context.Context, obj Component) references.Absence {
	absent, versions := o.readReferences(ctx, obj)
	o.watches.SetReferences(client.ObjectKeyFromObject(obj), append(versions, o.outputs.Check(ctx, obj)...))
	return absent
}

// readReferences loads what the spec refers to, and returns which versions it has read. What
// is missing is no absence if the component is being deleted and does not wait for it.
func (o *opener) readReferences(ctx context.Context, obj Component) (references.Absence, []informer.Reference) {
	found, keep := o.author.finder.Find(specOf(obj))
	if len(found) == 0 {
		return references.Absence{}, nil
	}
	limited, cancel := context.WithTimeout(ctx, o.code.loadTimeout)
	defer cancel()
	absent, versions := references.Load(limited, o.local, o.terms(), obj, found)
	keep()
	if o.holdsSecret(obj, found) {
		confidential.Note(ctx)
	}
	if slices.ContainsFunc(found, o.author.isCustom) {
		custom := o.loadCustomReferences(ctx, obj)
		absent.Missing, absent.Failed = append(absent.Missing, custom.Missing...), append(absent.Failed, custom.Failed...)
	}
	return absent, versions
}

// holdsSecret reports whether a reference has loaded a Secret. The kubeconfig of the component does not count: nothing of it
// gets into manifests.
func (o *opener) holdsSecret(obj Component, found []references.Found) bool {
	kubeConfig := kubeConfigOf(obj)
	return slices.ContainsFunc(found, func(reference references.Found) bool {
		if key, ok := reference.Pointer.(*SecretKeyReference); ok && len(key.Value()) > 0 && len(kubeConfig) > 0 && &key.Value()[0] == &kubeConfig[0] {
			return false
		}
		source := sourceOf(reference.Pointer)
		return source != nil && source.Kind == references.Secret && *source.Loaded != nil
	})
}

// loadCustomReferences loads the references of types that the author of the operator wrote.
// Their code gets a copy, because it may run on after the deadline.
func (o *opener) loadCustomReferences(ctx context.Context, obj Component) references.Absence {
	theirs, err := identity.Copy(obj)
	if err != nil {
		return references.Absence{Failed: []error{err}}
	}
	const what = "loading references"
	known := manifests.FromContext(o.basicContext(ctx))
	known.Component = theirs
	absent, err := callUserCode(known.In(ctx), o.code, client.ObjectKeyFromObject(obj), what, o.code.loadTimeout, func(ctx context.Context) (references.Absence, error) {
		var absent references.Absence
		found, keep := o.author.finder.Find(specOf(theirs))
		for _, reference := range found {
			if o.author.isCustom(reference) {
				absent.Add(theirs, reference, confidential.Failure(ctx, o.author.load(ctx, confidential.NotingClient(o.local), reference, theirs)))
			}
		}
		keep()
		return absent, nil
	})
	if err == nil {
		err = takeOver(what, obj, theirs)
	}
	if err != nil {
		absent.Failed = append(absent.Failed, err)
	}
	return absent
}

func newComponent[T Component]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}
