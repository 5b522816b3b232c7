// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	// holdBase is how long manifests stay after they changed although nothing that
	// they follow from did; with every further change it doubles up to holdLimit.
	holdBase  = time.Hour
	holdLimit = 6 * time.Hour
	// maxPlaces limits how many differences are told.
	maxPlaces = 3
	// reasonNonDeterministic is the reason of the event about a generator that renders
	// something else every time.
	reasonNonDeterministic = "NonDeterministicRendering"
)

// rendering is the last rendering of a component that was applied. It keeps a generator that
// renders something else every time, such as a random password or the time, from making the
// objects change with every reconcile.
type rendering struct {
	inputs  string // the digest of what the component says
	answers string // the digest of what the generator read
	digest  string // of the objects
	// changes counts the changes that nothing explains.
	changes int
	// until is when the next such change is applied; before, it is objects that are applied.
	until   time.Time
	objects []client.Object
	// finding says where two renderings of the same input differ; empty if that is not known.
	finding string
}

// accept returns the objects to apply, and reports whether they are those of an earlier
// rendering. A change that nothing in the component explains is applied if the cluster
// explains it, which is asked only then. Else the first one is applied at once, because it
// may come from something that the generator looks up elsewhere. The next one has to wait;
// until then the manifests that were applied last are applied in its place.
func (r *rendering) accept(current rendering, now time.Time, explained func() bool) (objects []client.Object, held bool) {
	objects = current.objects
	current.objects = nil // they are kept only where they may be needed
	switch {
	case r.inputs != current.inputs:
		*r = current
	case r.digest == current.digest:
		if r.changes > 0 && !now.Before(r.until) {
			// It has settled.
			current.finding = r.finding
			*r = current
		}
	case (r.answers != current.answers || !now.Before(r.until)) && explained():
		current.finding = r.finding
		if now.Before(r.until) { // what nothing explained before still counts
			current.objects, current.changes, current.until = objects, r.changes, r.until
		}
		*r = current
	case now.Before(r.until):
		return r.objects, true
	default:
		current.objects, current.changes, current.finding = objects, r.changes+1, r.finding
		current.until = now.Add(backoff.Delay(r.changes, holdBase, holdLimit))
		*r = current
	}
	return objects, false
}

// notices is everything that the message of the component has to say about its manifests.
func (r *rendering) notices() []string {
	var notices []string
	if r.finding != "" {
		notices = append(notices, r.finding)
	}
	if r.changes >= 2 {
		notices = append(notices, fmt.Sprintf("the manifests change with every rendering although nothing else does, so changes are applied at most once in %s",
			backoff.Delay(r.changes-1, holdBase, holdLimit)))
	}
	return notices
}

// render renders the dependent objects. What it returns are those to apply.
func (h *handler[T]) render(ctx context.Context, obj T, wanted directives) (objects []client.Object, err error) {
	var read *answers
	err = h.telemetry.part(ctx, metrics.PhaseRender, func(ctx context.Context) error {
		objects, read, err = h.generate(ctx, obj, wanted)
		return err
	})
	inputs := inputsOf(ctx, obj)
	if err != nil || inputs == "" {
		return objects, err
	}
	last, finding := &h.remembered(obj).rendering, ""
	current := rendering{inputs: inputs, answers: read.digest(), digest: digestOfObjects(h.followed(objects)), objects: objects}
	before := last.notices()
	chosen, held := last.accept(current, h.now(), func() (explained bool) {
		explained, finding = h.renderAgain(ctx, obj, wanted, current, read)
		return explained && last.answers != current.answers
	})
	if finding != "" {
		last.finding = finding
	}
	if held {
		metrics.RenderHeldBack(h.telemetry.controller)
		logf.FromContext(ctx).V(1).Info("the rendered manifests are held back, because they change without a cause")
	}
	if notices := last.notices(); len(before) == 0 && len(notices) > 0 {
		events.Send(h.recorder, obj, 1, events.Event{
			Type: corev1.EventTypeWarning, Reason: reasonNonDeterministic, Action: string(applying), Note: notices[0],
		})
	}
	return chosen, nil
}

// renderAgain renders once more after an unexpected change. It reports whether the cluster
// may explain the change: the manifests are the same again, or what the generator reads
// has changed meanwhile. If not, the finding says where they differ.
//
// While something that the generator reads does not exist, a difference is no finding: a
// template that generates a password unless it finds the Secret with it generates another
// one each time until the Secret is there.
func (h *handler[T]) renderAgain(ctx context.Context, obj T, wanted directives, current rendering, read *answers) (explained bool, finding string) {
	ctx, origins := manifests.WithOrigins(ctx)
	next, readAgain, err := h.generate(ctx, obj, wanted)
	if err != nil {
		// If it is more than a coincidence, it will be seen: the same is rendered again soon.
		logf.FromContext(ctx).Info("could not render again to see whether the manifests are the same", "error", err.Error())
		return false, ""
	}
	followed := h.followed(next)
	if digestOfObjects(followed) == current.digest || readAgain.digest() != current.answers {
		return true, ""
	}
	places := difference.Between(followed, h.followed(current.objects), maxPlaces)
	if len(places) == 0 || read.foundNothing() {
		return false, ""
	}
	return false, redact.From(ctx).Text(findingOf(places, origins))
}

// generate renders the dependent objects, and returns what was read for it. The
// generator gets a copy of the component: if it does not come back in time, it is left
// behind with it.
func (h *handler[T]) generate(ctx context.Context, obj T, wanted directives) ([]client.Object, *answers, error) {
	theirs, err := copyOf(obj)
	if err != nil {
		return nil, nil, err
	}
	ctx = manifests.WithComponent(ctx, theirs)
	read := &answers{}
	if target, err := manifests.ClientFromContext(ctx); err == nil {
		ctx = manifests.WithClient(ctx, read.client(target))
	}
	if local, err := manifests.LocalClientFromContext(ctx); err == nil {
		ctx = manifests.WithLocalClient(ctx, read.client(local))
	}
	objects, err := guarded(ctx, h.guard, client.ObjectKeyFromObject(obj), "generator", h.generateTimeout, func(ctx context.Context) ([]client.Object, error) {
		return manifests.Generate(ctx, patched(h.generator, theirs), wanted.namespace, wanted.name, theirs.GetSpec())
	})
	if err != nil {
		return nil, read, err
	}
	read.noteServed(ctx)
	return objects, read, nil
}

// followed returns the objects whose manifests count with every rendering. One that is
// applied once, such as a generated password, may be rendered in any way.
func (h *handler[T]) followed(objects []client.Object) []client.Object {
	policy := h.settings.name + "/" + v1alpha1.AnnotationReconcilePolicy
	return slices.DeleteFunc(slices.Clone(objects), func(object client.Object) bool {
		return strings.EqualFold(annotationsOf(object)[policy], string(v1alpha1.ReconcilePolicyOnce))
	})
}

// annotationsOf is empty for what cannot be read, which the engine refuses.
func annotationsOf(object client.Object) (annotations map[string]string) {
	defer func() { _ = recover() }() // the object may be of any type that a user wrote
	return object.GetAnnotations()
}

// digestOfObjects is the same whatever the order of the objects is. It stays in
// memory, so it needs no key.
func digestOfObjects(objects []client.Object) string {
	parts := make([]string, 0, len(objects))
	for _, object := range objects {
		parts = append(parts, digestOfObject(object))
	}
	slices.Sort(parts)
	return digest.Combine(parts...)
}

// digestOfObject is empty for what cannot be read, which the engine refuses.
func digestOfObject(object client.Object) (sum string) {
	defer func() { _ = recover() }() // the object may be of any type that a user wrote
	if value := reflect.ValueOf(object); object == nil || value.Kind() == reflect.Pointer && value.IsNil() {
		return ""
	}
	if untyped, ok := object.(runtime.Unstructured); ok {
		return digest.Hasher{}.Manifest(untyped.UnstructuredContent())
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return ""
	}
	// Typed objects often do not say their kind.
	return digest.Combine(reflect.TypeOf(object).String(), string(encoded))
}

// inputsOf identifies what the component says to its generator. It is empty if that is
// not known.
func inputsOf(ctx context.Context, c Component) string {
	component, err := manifests.ComponentDigestFromContext(ctx)
	if err != nil {
		return ""
	}
	parts := []string{component}
	for _, key := range slices.Sorted(maps.Keys(c.GetLabels())) {
		parts = append(parts, key, c.GetLabels()[key])
	}
	return digest.Combine(parts...)
}

// findingOf names objects, fields and templates, but no values: they may be secret.
func findingOf(places []difference.Place, origins *manifests.Origins) string {
	texts := make([]string, 0, len(places))
	for _, place := range places {
		text := place.String()
		if origin := origins.Of(place.Source); origin != "" {
			text += " (from " + origin + ")"
		}
		texts = append(texts, text)
	}
	return "two renderings of the same input are not the same: " + strings.Join(texts, "; ")
}

// patched returns the generator with the patches that the component asks for.
// They are part of the spec, and thereby of the digest of the component. One that
// cannot be applied is a mistake in the spec.
func patched(g manifests.Generator, c Component) manifests.Generator {
	own, ok := configurationOf[PatchesConfiguration](c)
	if !ok {
		return g
	}
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		patches, images := own.GetPatches(), own.GetImages()
		if len(patches) == 0 && len(images) == 0 {
			return manifests.Generate(ctx, g, namespace, name, parameters)
		}
		transformer, err := transform.PatchesBeside(patches, images, func(ctx context.Context) ([]client.Object, error) {
			// Hooks of a chart for the installation are not rendered for an upgrade, and the
			// other way round. A patch of one is no mistake, although it changes nothing now.
			ctx = manifests.WithComponentInstallation(ctx, !manifests.IsComponentInstallation(ctx))
			return manifests.Generate(ctx, g, namespace, name, parameters)
		})
		if err != nil {
			return nil, wrongPatches(err)
		}
		objects, err := manifests.Generate(ctx, g, namespace, name, parameters)
		if err != nil {
			return nil, err
		}
		changed, err := manifests.TransformObjects(ctx, transformer, namespace, name, objects)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err // it took too long, which a slow machine may be the cause of
		case err != nil:
			return nil, wrongPatches(err)
		}
		return changed, nil
	})
}

func wrongPatches(err error) error {
	return &verdict.InvalidError{Err: fmt.Errorf("patches of the component: %w", err)}
}
