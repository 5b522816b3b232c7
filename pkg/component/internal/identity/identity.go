// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity tells to which operator a component belongs, and how messages, the engine and the stores name the component.
package identity

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// Component is a component of any type. It has the methods of component.Component.
type Component interface {
	client.Object
	GetSpec() types.Unstructurable
	GetStatus() *v1alpha1.ComponentStatus
}

// Copy returns a deep copy of a component. It is an error of the author if the copy has another type.
func Copy(obj Component) (Component, error) {
	duplicate := obj.DeepCopyObject()
	if reflect.TypeOf(duplicate) != reflect.TypeOf(obj) {
		return nil, fmt.Errorf("DeepCopyObject of %T returns %T", obj, duplicate)
	}
	return duplicate.(Component), nil
}

// Operator identifies an operator and the components that it reconciles.
type Operator struct {
	// Name is the name of the reconciler, and the prefix of its annotations.
	Name string
	// FieldOwner and Finalizer are what the operator writes into components.
	FieldOwner, Finalizer string
	// AdoptOperator is the former operator of all components, which this operator replaces; empty if there is none.
	AdoptOperator string
	// AdoptHelmOperator: the operator replaces a Helm operator of operator-sdk for the same kind.
	AdoptHelmOperator bool
	// Kind is the kind of the components.
	Kind schema.GroupVersionKind
}

// Annotation returns the key of an annotation of components, by its name without the prefix.
func (o *Operator) Annotation(name string) string { return o.Name + "/" + name }

// Value returns the value of an annotation of a component, by its name without the prefix.
func (o *Operator) Value(obj metav1.Object, name string) string {
	return obj.GetAnnotations()[o.Annotation(name)]
}

// Instructions returns the annotations by which users instruct the operator. The request for a preview changes nothing of the component.
func (o *Operator) Instructions(obj metav1.Object) map[string]string {
	own := maps.Clone(obj.GetAnnotations())
	maps.DeleteFunc(own, func(key, _ string) bool {
		return !strings.HasPrefix(key, o.Name+"/") || key == o.Annotation(vocabulary.AnnotationPreview)
	})
	return own
}

// Claim describes the other operator that has claimed a component; it is empty if there is none. The status names that operator,
// and a finalizer shows that it has not left: a finalizer of its name, or the one that this operator has by an option.
func (o *Operator) Claim(obj client.Object, reconciler string) string {
	if claim := o.helmOperatorClaim(obj); claim != "" {
		return claim
	}
	if reconciler == "" || reconciler == o.Name || reconciler == o.FormerName(obj) {
		return ""
	}
	finalizer := reconciler
	if !slices.Contains(obj.GetFinalizers(), finalizer) {
		finalizer = o.Finalizer
	}
	if finalizer == o.Name || !slices.Contains(obj.GetFinalizers(), finalizer) {
		return ""
	}
	return fmt.Sprintf("operator %s has claimed it, as status.reconciler and the finalizer %s say; operator %s leaves it alone until that finalizer is gone, or the annotation %s: %s says that it takes the place of that operator",
		reconciler, finalizer, o.Name, o.Annotation(vocabulary.AnnotationAdoptOperator), reconciler)
}

// IsOther reports whether a name can be that of another operator.
func (o *Operator) IsOther(name string) bool {
	return name != o.Name && len(validation.IsDNS1123Subdomain(name)) == 0
}

// FormerName returns the name of the former operator of a component, which this operator replaces; it is empty if there is none.
func (o *Operator) FormerName(obj client.Object) string {
	former, annotated := obj.GetAnnotations()[o.Annotation(vocabulary.AnnotationAdoptOperator)]
	if !annotated {
		former = o.AdoptOperator
	}
	if !o.IsOther(former) {
		return ""
	}
	return former
}

// Former returns the name of the former operator as long as the status says that the component belongs to it.
func (o *Operator) Former(obj Component) string {
	if former := o.FormerName(obj); former == obj.GetStatus().Reconciler {
		return former
	}
	return ""
}

// FormerFinalizer returns the finalizer of the former operator, unless both operators have the same finalizer by an option.
func (o *Operator) FormerFinalizer(obj Component) string {
	if former := o.Former(obj); former != o.Finalizer && former != "" {
		return former
	}
	return o.helmOperatorFinalizer(obj)
}

// helmOperatorFinalizers are the finalizers of operator-sdk's Helm operator, and of its library helm-operator-plugins.
var helmOperatorFinalizers = []string{"helm.sdk.operatorframework.io/uninstall-release", "uninstall-helm-release"}

// helmOperatorFinalizer returns the finalizer of the Helm operator that this operator replaces; it is empty if the component has none.
func (o *Operator) helmOperatorFinalizer(obj client.Object) string {
	i := slices.IndexFunc(helmOperatorFinalizers, func(finalizer string) bool {
		return finalizer != o.Finalizer && slices.Contains(obj.GetFinalizers(), finalizer)
	})
	if i < 0 || !o.AdoptHelmOperator {
		return ""
	}
	return helmOperatorFinalizers[i]
}

// helmOperatorClaim describes why a component still belongs to the Helm operator that this operator replaces; it is empty if it does not.
// This operator removes the finalizer of the Helm operator in the write that adds its own, so both are there only if the Helm operator runs.
func (o *Operator) helmOperatorClaim(obj client.Object) string {
	finalizer := o.helmOperatorFinalizer(obj)
	switch {
	case finalizer == "":
		return ""
	case slices.Contains(obj.GetFinalizers(), o.Finalizer):
		return fmt.Sprintf("the Helm operator that operator %s replaces is running, because the finalizer %s is back: stop that operator, and then remove this finalizer; "+
			"until then operator %[1]s leaves the component alone", o.Name, finalizer)
	case obj.GetDeletionTimestamp() != nil:
		return fmt.Sprintf("its deletion began under the Helm operator, as the finalizer %s shows: start that operator until the component is gone; operator %s leaves it alone", finalizer, o.Name)
	}
	return ""
}

// ServerFinalizers are finalizers that the garbage collector of the server adds and removes.
var ServerFinalizers = []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents}

// ForeignFinalizers describes the finalizers of other clients that a component has; it is empty if there are none.
func (o *Operator) ForeignFinalizers(obj Component) string {
	foreign := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(finalizer string) bool {
		return finalizer == o.Finalizer || finalizer == o.FormerFinalizer(obj) || slices.Contains(ServerFinalizers, finalizer)
	})
	if len(foreign) == 0 {
		return ""
	}
	return fmt.Sprintf("has the finalizer %s, which is not ours", strings.Join(foreign, ", "))
}

// Title returns the name of a component in messages: "Kind namespace/name".
func (o *Operator) Title(obj metav1.Object) string { return Title(o.Kind.Kind, obj) }

// Title returns the name of an object in messages: "Kind namespace/name".
func Title(kind string, obj metav1.Object) string {
	return report.Key{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}.String()
}

// About adds the name of a component to an error about it.
func (o *Operator) About(obj metav1.Object, err error) error {
	return fmt.Errorf("%s: %w", o.Title(obj), err)
}

// Conditions returns a setter of the conditions of a component.
func Conditions(obj Component) conditions.Setter {
	return conditions.For(obj, &obj.GetStatus().Conditions)
}

// Owner returns the component as an owner of the engine.
func (o *Operator) Owner(obj metav1.Object) reconciler.Owner {
	owner := o.OwnerOf(client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()})
	owner.UID = obj.GetUID()
	return owner
}

// OwnerOf returns the owner of a key, without a UID.
func (o *Operator) OwnerOf(key client.ObjectKey) reconciler.Owner {
	return reconciler.Owner{Group: o.Kind.Group, Kind: o.Kind.Kind, Namespace: key.Namespace, Name: key.Name}
}

// Inventory returns the component as the store of inventories identifies it.
func (o *Operator) Inventory(obj metav1.Object) inventory.Component {
	apiVersion, kind := o.Kind.ToAPIVersionAndKind()
	return inventory.Component{
		APIVersion: apiVersion, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		Deleting: obj.GetDeletionTimestamp() != nil,
	}
}

// Revisions returns the component as the store of revisions identifies it.
func (o *Operator) Revisions(obj metav1.Object) revisions.Component {
	return revisions.Component{GroupVersionKind: o.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID()}
}

// ListKind returns the kind of a list of the components.
func (o *Operator) ListKind() schema.GroupVersionKind {
	return o.Kind.GroupVersion().WithKind(o.Kind.Kind + "List")
}
