// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/lookout"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	// loadTimeout bounds the reads of all references of a component.
	loadTimeout = 30 * time.Second
	// missingRetry is when a component comes again that waits for what it refers to.
	missingRetry = 10 * time.Second
)

// absence is why references are not loaded.
type absence struct {
	// missing are sentences about what does not exist.
	missing []error
	// failed are requests that gave no answer.
	failed []error
}

// retry makes an error of it for a component that is not being deleted.
func (a absence) retry() error {
	var missing error
	if len(a.missing) > 0 {
		missing = types.NewRetriableError(errors.Join(a.missing...), new(missingRetry))
	}
	return errors.Join(errors.Join(a.failed...), missing)
}

// referenceMistakes returns what is wrong with the references themselves, and with durations.
func referenceMistakes(c Component, references []found) error {
	var mistakes []error
	for _, reference := range references {
		for _, mistake := range reference.mistakes(c) {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", reference.path, mistake))
		}
	}
	return errors.Join(mistakes...)
}

func (f found) mistakes(c Component) []error {
	if duration, ok := f.pointer.(*types.Duration); ok && duration.Mistake() != nil {
		return []error{duration.Mistake()}
	}
	l, ok := f.pointer.(loadable)
	if !ok {
		return nil
	}
	mistakes := l.origin().check(f.fallbackKeys())
	if c.GetNamespace() == "" {
		mistakes = append(mistakes, fmt.Errorf("a component without a namespace cannot refer to a %s", l.origin().kind))
	}
	return mistakes
}

// loadReferences loads what the spec refers to, for a pass that goes by it: from then
// on, only what is newer wakes the component.
func (h *handler[T]) loadReferences(ctx context.Context, obj T) absence {
	absent, points := h.readReferences(ctx, obj)
	h.lookouts.refer(client.ObjectKeyFromObject(obj), points)
	return absent
}

// readReferences loads what the spec refers to, and says what it has seen. What is
// missing is no absence if the component is being deleted and does not wait for it.
func (h *handler[T]) readReferences(ctx context.Context, obj T) (absence, []lookout.Point) {
	references, keep := h.finder.find(obj.GetSpec())
	if len(references) == 0 {
		return absence{}, nil
	}
	limited, cancel := context.WithTimeout(ctx, h.loadTimeout)
	defer cancel()
	l := &loader{client: redact.From(ctx).Client(h.local), component: obj, contents: map[origin]answer{}}
	custom := false
	for _, reference := range references {
		switch reference.pointer.(type) {
		case loadable:
			l.load(limited, reference)
		case Reference[T]:
			custom = true
		}
	}
	keep()
	points := l.points()
	if custom {
		h.loadCustom(ctx, obj, l)
	}
	return l.absence, points
}

// loadCustom loads the references that are not of this package: code of the author
// of the operator, which gets a copy in case it is left behind.
func (h *handler[T]) loadCustom(ctx context.Context, obj T, l *loader) {
	theirs, err := copyOf(obj)
	if err != nil {
		l.failed = append(l.failed, err)
		return
	}
	const what = "loading references"
	absent, err := guarded(h.basicContext(ctx, obj), h.guard, client.ObjectKeyFromObject(obj), what, h.loadTimeout, func(ctx context.Context) (absence, error) {
		references, keep := h.finder.find(theirs.GetSpec())
		own := loader{component: theirs}
		for _, reference := range references {
			if custom, ok := reference.pointer.(Reference[T]); ok {
				own.note(reference, custom.Load(ctx, redact.From(ctx).Client(h.local), theirs))
			}
		}
		keep()
		return own.absence, nil
	})
	if err == nil {
		l.missing, l.failed = append(l.missing, absent.missing...), append(l.failed, absent.failed...)
		err = takeOver(what, obj, theirs)
	}
	if err != nil {
		l.failed = append(l.failed, err)
	}
}

// loader loads the references of one component, and reads each object once.
type loader struct {
	absence
	client    client.Client
	component Component
	contents  map[origin]answer
}

type answer struct {
	content content
	version string // resourceVersion
	err     error
}

// points are the objects that were read, or found missing, and which versions of them.
func (l *loader) points() []lookout.Point {
	var points []lookout.Point
	for object, answer := range l.contents {
		if answer.err != nil && !apierrors.IsNotFound(answer.err) {
			continue // what was not seen cannot be told from anything else
		}
		points = append(points, lookout.Point{
			Type: originTypes[object.kind], Namespace: l.component.GetNamespace(), Name: object.name, Seen: answer.version,
		})
	}
	return points
}

func (l *loader) load(ctx context.Context, reference found) {
	target := reference.pointer.(loadable)
	wanted := target.origin()
	if mistakes := reference.mistakes(l.component); len(mistakes) > 0 {
		// Only in deletion, where a mistake must not be in the way.
		l.miss(reference, errors.Join(mistakes...))
		return
	}
	name := fmt.Sprintf("%s %s/%s", wanted.kind, l.component.GetNamespace(), wanted.name)
	all, err := l.read(ctx, wanted.kind, wanted.name)
	switch {
	case apierrors.IsNotFound(err):
		l.miss(reference, fmt.Errorf("%s does not exist", name))
		return
	case err != nil:
		l.note(reference, fmt.Errorf("read %s: %w", name, err))
		return
	}
	chosen, missing := wanted.choose(all, reference.fallbackKeys())
	if missing != "" {
		l.miss(reference, fmt.Errorf("%s %s", name, missing))
		return
	}
	target.accept(chosen)
}

func (l *loader) miss(reference found, err error) {
	if l.component.GetDeletionTimestamp().IsZero() || reference.waitOnDeletion() {
		l.missing = append(l.missing, fmt.Errorf("%s: %w", reference.path, err))
	}
}

// note takes over the error of a reference, if it is one.
func (l *loader) note(reference found, err error) {
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		l.miss(reference, err)
	default:
		l.failed = append(l.failed, fmt.Errorf("%s: %w", reference.path, err))
	}
}

func (l *loader) read(ctx context.Context, kind, name string) (content, error) {
	object := origin{kind: kind, name: name}
	if known, ok := l.contents[object]; ok {
		return known.content, known.err
	}
	all := readContent(ctx, l.client, kind, client.ObjectKey{Namespace: l.component.GetNamespace(), Name: name})
	l.contents[object] = all
	return all.content, all.err
}

func readContent(ctx context.Context, from client.Client, kind string, key client.ObjectKey) answer {
	if kind == secretKind {
		secret := &corev1.Secret{}
		err := from.Get(ctx, key, secret)
		return answer{secret.Data, secret.ResourceVersion, err}
	}
	configMap := &corev1.ConfigMap{}
	err := from.Get(ctx, key, configMap)
	all := make(content, len(configMap.Data))
	for key, value := range configMap.Data {
		all[key] = []byte(value)
	}
	return answer{all, configMap.ResourceVersion, err}
}
