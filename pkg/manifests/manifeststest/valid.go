// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
)

// fallbackNamespace is used for objects in namespaces that do not exist yet.
const fallbackNamespace = metav1.NamespaceDefault

// Valid asks an API server whether it would create the objects, by a dry run that
// also refuses fields that the server does not know. Nothing is written. Every object
// that is refused is an error of the test, with the words of the server.
//
// Objects of namespaced types that have no namespace are checked in Case.Namespace. If a namespace
// does not exist, the object is checked in the namespace "default" in its place, because the server
// refuses everything else there before it looks at it. Objects of a type that comes with the
// objects, by a CustomResourceDefinition among them that the server does not have yet, cannot be
// checked; that is logged. The config may be the config of envtest or of any cluster; its user
// needs the right to create the objects.
func (c Case) Valid(t testing.TB, config *rest.Config) {
	t.Helper()
	objects := c.Render(t)
	server, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatalf("client of the API server: %v", err)
	}
	v := validation{server: server, namespace: c.Namespace, brought: brought(objects)}
	for _, object := range objects {
		if err := v.check(t.Context(), object.DeepCopy()); err != nil {
			t.Errorf("%s: %v", convert.Name(object), err)
		}
	}
	for _, name := range v.skipped {
		t.Logf("%s: not checked, because its type comes with the objects", name)
	}
}

type validation struct {
	server    client.Client
	namespace string
	brought   map[schema.GroupKind]bool
	skipped   []string
}

func (v *validation) check(ctx context.Context, object *unstructured.Unstructured) error {
	if object.IsList() {
		return object.EachListItem(func(item runtime.Object) error {
			inner := item.(*unstructured.Unstructured)
			if err := v.check(ctx, inner); err != nil {
				return fmt.Errorf("%s: %w", convert.Name(inner), err)
			}
			return nil
		})
	}
	namespaced, err := v.server.IsObjectNamespaced(object)
	if meta.IsNoMatchError(err) && v.brought[object.GroupVersionKind().GroupKind()] {
		v.skipped = append(v.skipped, convert.Name(object))
		return nil
	}
	if err != nil {
		return err
	}
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(cmp.Or(v.namespace, fallbackNamespace))
	}
	err = v.create(ctx, object)
	if namespaced && isMissingNamespace(err) {
		object.SetNamespace(fallbackNamespace)
		err = v.create(ctx, object)
	}
	return err
}

func (v *validation) create(ctx context.Context, object *unstructured.Unstructured) error {
	err := v.server.Create(ctx, object.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	// The name is looked at last.
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func isMissingNamespace(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	details := metav1.StatusDetails{}
	if ok && status.ErrStatus.Details != nil {
		details = *status.ErrStatus.Details
	}
	return apierrors.IsNotFound(err) && details.Kind == "namespaces"
}

// brought are the types that are defined among the objects.
func brought(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		kinds[schema.GroupKind{Group: group, Kind: kind}] = true
	}
	return kinds
}
