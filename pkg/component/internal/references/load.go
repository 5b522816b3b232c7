// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/pkg/types"
)

// RetryInterval is when a component is reconciled again that waits for an object of a reference.
//
// Limit: the delay of a component that waits for a reference or a requirement.
const RetryInterval = 10 * time.Second

// The kinds of objects that a Source names.
const (
	ConfigMap = "ConfigMap"
	Secret    = "Secret"
)

// content is the content of an object, by key.
type content = map[string][]byte

// Source describes a reference of pkg/component: the object that it names, and the content that it
// has loaded.
type Source struct {
	Kind, Name string
	// Whole means the whole object. Otherwise the reference names the Key, or else the
	// first of the fallback keys that exists.
	Whole bool
	Key   string
	// Loaded is the content that the reference has loaded: of the whole object, or the value of the key, with an
	// empty key. It points to nil as long as nothing is loaded.
	Loaded *map[string][]byte
	// Requirement is set for a requirement.
	Requirement *Requirement
}

// mistakes returns the mistakes in the name and the key, for a component in the namespace.
func (s *Source) mistakes(fallbacks []string, namespace string) (mistakes []error) {
	if s.Name == "" {
		mistakes = append(mistakes, fmt.Errorf("the name of the %s is missing", s.Kind))
	} else if problems := validation.IsDNS1123Subdomain(s.Name); len(problems) > 0 {
		mistakes = append(mistakes, fmt.Errorf("%s %q: %s", s.Kind, s.Name, strings.Join(problems, ", ")))
	}
	switch problems := validation.IsConfigMapKey(s.Key); {
	case s.Whole:
	case s.Key == "" && len(fallbacks) == 0:
		mistakes = append(mistakes, fmt.Errorf("the key in %s %s is missing", s.Kind, s.Name))
	case s.Key != "" && len(problems) > 0:
		mistakes = append(mistakes, fmt.Errorf("key %q in %s %s: %s", s.Key, s.Kind, s.Name, strings.Join(problems, ", ")))
	}
	if namespace == "" {
		mistakes = append(mistakes, fmt.Errorf("a component without a namespace cannot refer to a %s", s.Kind))
	}
	return mistakes
}

// choose returns the part of the content that the reference names, or the missing part.
func (s *Source) choose(all content, fallbacks []string) (chosen content, missing string) {
	if s.Whole {
		chosen = make(content, len(all))
		maps.Copy(chosen, all)
		return chosen, ""
	}
	keys := fallbacks
	if s.Key != "" {
		keys = []string{s.Key}
	}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			return content{"": append([]byte{}, value...)}, "" // a copy of its own: see holdsSecret of pkg/component
		}
	}
	if len(keys) == 1 {
		return nil, "has no key " + keys[0]
	}
	return nil, "has none of the keys " + strings.Join(keys, ", ")
}

// Mistakes returns the mistakes in the references themselves, and in durations, of a component in
// the namespace, which is empty for one that is cluster-scoped.
func Mistakes(references []Found, namespace string) error {
	var mistakes []error
	for _, reference := range references {
		if reference.source != nil && reference.source.Requirement != nil {
			mistakes = append(mistakes, reference.source.requirementMistakes(reference.Path)...)
			continue
		}
		for _, mistake := range reference.mistakes(namespace) {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", reference.Path, mistake))
		}
	}
	return errors.Join(mistakes...)
}

func (f Found) mistakes(namespace string) []error {
	if duration, ok := f.Pointer.(*types.Duration); ok && duration.Mistake() != nil {
		return []error{duration.Mistake()}
	}
	if f.source == nil {
		return nil
	}
	return f.source.mistakes(f.FallbackKeys(), namespace)
}

// Digest identifies the loaded content. A duration, which is found for its mistakes only, loads
// nothing. What a requirement loads is among the parameters.
func (f Found) Digest(hasher digest.Hasher) (sum string, loads bool) {
	if f.source == nil {
		custom, ok := f.Pointer.(interface{ Digest() string })
		if !ok {
			return "", false
		}
		return custom.Digest(), true
	}
	loaded := *f.source.Loaded
	if loaded == nil {
		return "", f.source.Requirement == nil
	}
	parts := make([]string, 0, 2*len(loaded))
	for _, key := range slices.Sorted(maps.Keys(loaded)) {
		parts = append(parts, key, string(loaded[key]))
	}
	return hasher.Combine(parts...), f.source.Requirement == nil
}

// Absence is why references are not loaded.
type Absence struct {
	// Missing are sentences about missing objects and keys.
	Missing []error
	// Failed are the errors of requests that gave no answer.
	Failed []error
}

// Err makes an error of the absence for a component that is not being deleted.
func (a Absence) Err() error {
	var missing error
	if len(a.Missing) > 0 {
		missing = types.NewRetriableError(errors.Join(a.Missing...), new(RetryInterval))
	}
	return errors.Join(errors.Join(a.Failed...), missing)
}

// Add adds the error of a reference of the component, unless it is nil. A missing object is no
// absence if the component is being deleted and the reference does not wait for it.
func (a *Absence) Add(component metav1.Object, reference Found, err error) {
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		a.addMissing(component, reference, err)
	default:
		a.Failed = append(a.Failed, fmt.Errorf("%s: %w", reference.Path, err))
	}
}

// waits reports whether the component waits for what a reference lacks.
func (f Found) waits(component metav1.Object) bool {
	return component.GetDeletionTimestamp().IsZero() || f.WaitOnDeletion()
}

func (a *Absence) addMissing(component metav1.Object, reference Found, err error) {
	if reference.waits(component) {
		a.Missing = append(a.Missing, fmt.Errorf("%s: %w", reference.Path, err))
	}
}

// Load loads the references of pkg/component, and reads each object once. It returns the absent
// objects, and which versions of the objects were read or found missing.
func Load(ctx context.Context, c client.Client, terms Terms, component metav1.Object, references []Found) (Absence, []informer.Reference) {
	l := &loader{client: c, terms: terms, component: component, objects: map[object]answer{}}
	for _, reference := range references {
		switch {
		case reference.source == nil:
		case reference.source.Requirement != nil:
			l.require(ctx, reference)
		default:
			l.load(ctx, reference)
		}
	}
	return l.absent, l.versions
}

// loader loads the references of one component.
type loader struct {
	client    client.Client
	terms     Terms
	component metav1.Object
	objects   map[object]answer
	absent    Absence
	versions  []informer.Reference
}

// object names an object. The resource is set for an object of a requirement only.
type object struct {
	kind, namespace, name string
	resource              schema.GroupVersionResource
}

// answer has the content of a Secret or a ConfigMap, and the owners of a Secret, or the object of a requirement.
type answer struct {
	content content
	owners  []metav1.OwnerReference
	object  unstructured.Unstructured
	err     error
}

func (l *loader) load(ctx context.Context, reference Found) {
	source := reference.source
	if mistakes := reference.mistakes(l.component.GetNamespace()); len(mistakes) > 0 {
		// Only in deletion, where a mistake must not be in the way.
		l.absent.addMissing(l.component, reference, errors.Join(mistakes...))
		return
	}
	name := fmt.Sprintf("%s %s/%s", source.Kind, l.component.GetNamespace(), source.Name)
	read := l.read(ctx, object{kind: source.Kind, namespace: l.component.GetNamespace(), name: source.Name})
	switch {
	case apierrors.IsNotFound(read.err):
		l.absent.addMissing(l.component, reference, fmt.Errorf("%s does not exist", name))
		return
	case read.err != nil:
		l.absent.Add(l.component, reference, fmt.Errorf("read %s: %w", name, read.err))
		return
	}
	chosen, missing := source.choose(read.content, reference.FallbackKeys())
	if missing != "" {
		l.absent.addMissing(l.component, reference, fmt.Errorf("%s %s", name, missing))
		return
	}
	*source.Loaded = chosen
}

// read returns an object, which it reads if that was not done before.
func (l *loader) read(ctx context.Context, o object) answer {
	if known, ok := l.objects[o]; ok {
		return known
	}
	key := client.ObjectKey{Namespace: o.namespace, Name: o.name}
	version := informer.Reference{Type: corev1.SchemeGroupVersion.WithResource("secrets"), Namespace: key.Namespace, Name: key.Name}
	var read answer
	switch {
	case o.resource.Resource != "":
		read.object.SetGroupVersionKind(o.resource.GroupVersion().WithKind(o.kind))
		read.err = l.client.Get(ctx, key, &read.object)
		version.Type, version.ResourceVersion = o.resource, read.object.GetResourceVersion()
	case o.kind == Secret:
		secret := &corev1.Secret{}
		read.err = l.client.Get(ctx, key, secret)
		read.content, read.owners, version.ResourceVersion = secret.Data, secret.OwnerReferences, secret.ResourceVersion
	default:
		configMap := &corev1.ConfigMap{}
		read.err = l.client.Get(ctx, key, configMap)
		read.content = make(content, len(configMap.Data))
		for key, value := range configMap.Data {
			read.content[key] = []byte(value)
		}
		version.Type, version.ResourceVersion = corev1.SchemeGroupVersion.WithResource("configmaps"), configMap.ResourceVersion
	}
	if client.IgnoreNotFound(read.err) == nil { // otherwise there is no version that the next one could be compared with
		l.versions = append(l.versions, version)
	}
	l.objects[o] = read
	return read
}
