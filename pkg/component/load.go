// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/manifests"
)

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
			reflect.TypeFor[SecretReference](), reflect.TypeFor[SecretKeyReference](),
		},
		Source: sourceOf,
		Custom: reflect.TypeFor[Reference[T]](),
	}
}

// loadReferences loads what the spec refers to, for a reconcile that renders from it: from
// then on, only newer versions requeue the component.
func (o *opener) loadReferences(ctx context.Context, obj Component) references.Absence {
	absent, versions := o.readReferences(ctx, obj)
	o.watches.SetReferences(client.ObjectKeyFromObject(obj), versions)
	return absent
}

// readReferences loads what the spec refers to, and returns which versions it has read. What
// is missing is no absence if the component is being deleted and does not wait for it.
func (o *opener) readReferences(ctx context.Context, obj Component) (references.Absence, []informer.Reference) {
	found, keep := o.author.finder.Find(obj.GetSpec())
	if len(found) == 0 {
		return references.Absence{}, nil
	}
	limited, cancel := context.WithTimeout(ctx, o.code.loadTimeout)
	defer cancel()
	absent, versions := references.Load(limited, o.local, obj, found)
	keep()
	if o.holdsSecret(obj, found) {
		confidential.Note(ctx)
	}
	if slices.ContainsFunc(found, o.author.isCustom) {
		custom, err := o.loadCustomReferences(ctx, obj)
		absent.Missing, absent.Failed = append(absent.Missing, custom.Missing...), append(absent.Failed, custom.Failed...)
		if err != nil {
			absent.Failed = append(absent.Failed, err)
		}
	}
	return absent, versions
}

// holdsSecret reports whether a reference has loaded a Secret. The kubeconfig of the component does not count: nothing of it
// gets into manifests.
func (o *opener) holdsSecret(obj Component, found []references.Found) bool {
	var kubeConfig []byte
	if own, ok := configurationOf[ClientConfiguration](obj); ok {
		kubeConfig = own.GetKubeConfig()
	}
	return slices.ContainsFunc(found, func(reference references.Found) bool {
		if key, ok := reference.Pointer.(*SecretKeyReference); ok && len(key.value) > 0 && len(kubeConfig) > 0 && &key.value[0] == &kubeConfig[0] {
			return false
		}
		source := sourceOf(reference.Pointer)
		return source != nil && source.Kind == references.Secret && source.Loaded() != nil
	})
}

// loadCustomReferences loads the references of types that the author of the operator wrote.
// Their code gets a copy, because it may run on after the deadline.
func (o *opener) loadCustomReferences(ctx context.Context, obj Component) (references.Absence, error) {
	theirs, err := identity.Copy(obj)
	if err != nil {
		return references.Absence{}, err
	}
	const what = "loading references"
	known := manifests.FromContext(o.basicContext(ctx))
	known.Component = theirs
	absent, err := callUserCode(known.In(ctx), o.code, client.ObjectKeyFromObject(obj), what, o.code.loadTimeout, func(ctx context.Context) (references.Absence, error) {
		var absent references.Absence
		found, keep := o.author.finder.Find(theirs.GetSpec())
		for _, reference := range found {
			if o.author.isCustom(reference) {
				absent.Add(theirs, reference, confidential.Failure(ctx, o.author.load(ctx, confidential.NotingClient(o.local), reference, theirs)))
			}
		}
		keep()
		return absent, nil
	})
	if err != nil {
		return references.Absence{}, err
	}
	return absent, takeOver(what, obj, theirs)
}

func newComponent[T Component]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}
