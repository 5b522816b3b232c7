// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/untyped"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
)

// maxImage limits the new name of an image, in bytes.
const maxImage = 1024

// patch is a v1alpha1.Patch that is known to be right.
type patch struct {
	position string
	text     *text
	// target is nil if the patch names its object itself.
	target *target
}

type patcher struct {
	sum
	patches []patch
	images  []v1alpha1.Image
	beside  Beside
}

// Beside is known to patches beside the objects that they may change.
type Beside struct {
	// Others returns objects that are not transformed, such as hooks of a chart that run at another moment. A patch that
	// names one of them changes nothing and does not fail. It is called only when a patch names an object that does not
	// exist; if it fails, the patch does. Nil returns none.
	Others func(ctx context.Context) ([]client.Object, error)
	// NoSecrets is why no patch may change a Secret: the error of a patch that names one. Other patches leave
	// Secrets, and lists that hold one, as they are. Nil: patches change Secrets, too.
	NoSecrets error
}

// Patches returns a transformer that applies patches in their order, and then replaces images. The error lists all
// mistakes. A patch without a target fails if its object does not exist. Merge patches do not change the type,
// name and namespace of an object, and JSON patches that change them fail.
func Patches(patches []v1alpha1.Patch, images []v1alpha1.Image) (manifests.ObjectTransformer, error) {
	return PatchesBeside(patches, images, Beside{})
}

// PatchesBeside is Patches with regard to further objects.
func PatchesBeside(patches []v1alpha1.Patch, images []v1alpha1.Image, beside Beside) (manifests.ObjectTransformer, error) {
	p := &patcher{sum: digest.OfValues("patches", patches, images, beside), images: append([]v1alpha1.Image(nil), images...), beside: beside}
	var errs []error
	for i, given := range patches {
		position := fmt.Sprintf("patch %d of %d", i+1, len(patches))
		parsed, err := parsePatch(position, given)
		if err == nil && parsed.namesSecret() {
			err = beside.NoSecrets
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", position, err))
			continue
		}
		p.patches = append(p.patches, parsed)
	}
	for i, image := range images {
		if image.Name == "" {
			errs = append(errs, fmt.Errorf("image %d of %d: it has no name", i+1, len(images)))
		}
		if len(image.NewName)+len(image.NewTag)+len(image.Digest) > maxImage {
			errs = append(errs, fmt.Errorf("image %d of %d: it is longer than %d bytes", i+1, len(images), maxImage))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

func parsePatch(position string, given v1alpha1.Patch) (parsed patch, err error) {
	parsed.position = position
	if parsed.text, err = parseText(given.Patch); err != nil {
		return parsed, err
	}
	if given.Target != nil {
		if len(parsed.text.objects) > 1 {
			return parsed, errors.New("a patch with a target must be one document")
		}
		parsed.target, err = parseTarget(given.Target)
		return parsed, err
	}
	if parsed.text.operations != nil {
		return parsed, errors.New("JSON patch operations need a target")
	}
	for _, object := range parsed.text.objects {
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			return parsed, errors.New("a merge patch without a target needs apiVersion, kind and metadata.name")
		}
	}
	return parsed, nil
}

func (p *patcher) TransformObjects(namespace, name string, objects []client.Object) ([]client.Object, error) {
	return p.TransformObjectsContext(context.Background(), namespace, name, objects)
}

// TransformObjectsContext is TransformObjects that ends when the context does.
func (p *patcher) TransformObjectsContext(ctx context.Context, namespace, _ string, objects []client.Object) ([]client.Object, error) {
	list, err := convert.ToUnstructuredList(objects)
	if err != nil {
		return nil, err
	}
	b := newBudget(ctx)
	others := sync.OnceValue(func() []*unstructured.Unstructured { return p.beside.others(ctx) })
	for _, patch := range p.patches {
		if list, err = patch.apply(b, namespace, list, p.beside.NoSecrets == nil, others); err != nil {
			return nil, confidential.At(patch.position, err)
		}
	}
	if len(p.images) > 0 {
		list, err = b.each(list, all, "images", maxObject, func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			untyped.EachImage(object, func(holder map[string]any, field string) { replaceImage(holder, field, p.images) })
			return object, nil
		})
	}
	if err == nil {
		err = b.settle(list)
	}
	if err != nil {
		return nil, err
	}
	return convert.ToObjects(list), nil
}

// namesSecret reports whether the patch is for Secrets only.
func (p patch) namesSecret() bool {
	if p.target != nil {
		return p.target.secrets
	}
	return slices.ContainsFunc(p.text.objects, func(object *unstructured.Unstructured) bool { return holdsSecret(object.Object, maxNesting) })
}

// maxNesting is how deep lists may be nested. The engine accepts fewer levels.
const maxNesting = 10

func holdsSecret(content map[string]any, depth int) bool {
	if kind := content["kind"]; content["apiVersion"] == "v1" && (kind == "Secret" || kind == "SecretList") || depth == 0 {
		return true
	}
	items, _ := content["items"].([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		object, ok := item.(map[string]any)
		return ok && holdsSecret(object, depth-1)
	})
}

// others returns the objects as maps, and none if there is an error.
func (b Beside) others(ctx context.Context) []*unstructured.Unstructured {
	if b.Others == nil {
		return nil
	}
	objects, err := b.Others(ctx)
	if err != nil {
		return nil
	}
	list, err := convert.ToUnstructuredList(objects)
	if err != nil {
		return nil
	}
	return list
}

func (p patch) apply(b *budget, namespace string, list []*unstructured.Unstructured, secrets bool, others func() []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	each := func(meant func(*unstructured.Unstructured) bool, change func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) ([]*unstructured.Unstructured, error) {
		return b.each(list, func(object *unstructured.Unstructured) bool {
			return meant(object) && (secrets || !holdsSecret(object.Object, maxNesting))
		}, p.position, p.text.size(), change)
	}
	if p.target != nil {
		return each(func(object *unstructured.Unstructured) bool { return p.target.matches(object, namespace) },
			func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return p.change(object, namespace)
			})
	}
	for _, content := range p.text.objects {
		found := false
		var err error
		list, err = each(func(object *unstructured.Unstructured) bool {
			same := isMeant(content, object, namespace)
			found = found || same
			return same
		}, func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return merge(object, content)
		})
		if err != nil {
			return nil, err
		}
		if !found && !slices.ContainsFunc(others(), func(object *unstructured.Unstructured) bool { return isMeant(content, object, namespace) }) {
			return nil, fmt.Errorf("there is no %s of %s to patch; a patch with a target may match nothing", convert.Name(content), content.GetAPIVersion())
		}
	}
	return list, nil
}

// change applies a patch that has a target.
func (p patch) change(object *unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	if p.text.operations == nil {
		return merge(object, p.text.objects[0])
	}
	before := keyOf(object)
	if err := p.text.operations.apply(object.Object); err != nil {
		return nil, confidential.At(convert.Name(before), err)
	}
	if !isMeant(object, before, namespace) {
		return nil, fmt.Errorf("%s: a patch cannot make another object of it: apiVersion, kind, metadata.name and metadata.namespace must stay as they are", convert.Name(before))
	}
	return object, nil
}

// isMeant reports whether the patch names the object. Objects without a namespace
// count as in the given one.
func isMeant(patch, object *unstructured.Unstructured, namespace string) bool {
	of := func(u *unstructured.Unstructured) string {
		if u.GetNamespace() != "" {
			return u.GetNamespace()
		}
		return namespace
	}
	return patch.GroupVersionKind() == object.GroupVersionKind() && patch.GetName() == object.GetName() && of(patch) == of(object)
}

// merge merges a patch into the object, by the rules of its type if that is one
// of Kubernetes. It returns nil if the patch deletes the object. The object keeps
// its type, name and namespace.
func merge(object, patch *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	content := runtime.DeepCopyJSON(patch.Object)
	if content["$patch"] == "delete" {
		return nil, nil
	}
	before := keyOf(object)
	merged, err := mergeContent(object, content)
	if err != nil {
		return nil, confidential.At(convert.Name(before), err)
	}
	result := &unstructured.Unstructured{Object: merged}
	result.SetGroupVersionKind(before.GroupVersionKind())
	result.SetName(before.GetName())
	result.SetNamespace(before.GetNamespace())
	return result, nil
}

// keyOf returns an object with the type, the name and the namespace of another one.
func keyOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	key := &unstructured.Unstructured{Object: map[string]any{}}
	key.SetGroupVersionKind(object.GroupVersionKind())
	key.SetName(object.GetName())
	key.SetNamespace(object.GetNamespace())
	return key
}

func mergeContent(object *unstructured.Unstructured, patch map[string]any) (map[string]any, error) {
	if typed, err := scheme.Scheme.New(object.GroupVersionKind()); err == nil {
		return strategicpatch.StrategicMergeMapPatch(object.Object, patch, typed)
	}
	if patch["$patch"] == "replace" {
		delete(patch, "$patch")
		return patch, nil
	}
	return mergeMap(object.Object, patch), nil
}

// mergeMap merges as a JSON merge patch does (RFC 7386).
func mergeMap(into, patch map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(into, key)
		case map[string]any:
			below, _ := into[key].(map[string]any)
			into[key] = mergeMap(below, value)
		default:
			into[key] = value
		}
	}
	return into
}
