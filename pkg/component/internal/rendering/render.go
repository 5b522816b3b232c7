// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rendering renders the dependent objects of a component.
//
// A [Renderer] calls the generator with a copy of the component, and applies the patches of
// the component. A generator should render the same from the same input. For those that do
// not, [Last] decides whether a change is applied: a change that nothing explains is applied
// seldom. What may explain a change are the component and the objects that the generator has
// read; the clients that it gets note them.
//
// Where a generator reports that it used random values, the fields that come from them are
// found by rendering more than once. They keep their values as long as the revision lasts, and
// all renderings of a revision take the same time for the current one.
package rendering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/untyped"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/outputs"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	// maxPlaces limits how many differences a message names.
	maxPlaces = 3
	// reasonNonDeterministic means that the generator renders different manifests for the same input. The operator
	// keeps the last ones for some hours.
	//
	// Event type: Warning
	// What to do: make the generator deterministic, or report random values with manifests.NoteRandom.
	reasonNonDeterministic = "NonDeterministicRendering"
)

// Renderer renders the dependent objects of components.
type Renderer struct {
	Self      *identity.Operator
	Generator manifests.Generator
	// Run calls code of the author of the operator for the component of the key.
	Run func(ctx context.Context, key client.ObjectKey, generate func(context.Context) ([]client.Object, error)) ([]client.Object, error)
	// Parameters returns the parameters of the generator for a component.
	Parameters func(identity.Component) types.Unstructurable
	// Patches returns the patches of a component.
	Patches func(identity.Component) ([]v1alpha1.Patch, []v1alpha1.Image)
	// Outputs are outputs of the rendered objects, in addition to those of their annotations.
	Outputs []outputs.Rule
	// SecretPatches: patches of a component may change Secrets.
	SecretPatches bool
	Telemetry     *telemetry.Telemetry
	Now           func() time.Time
	// Revisions keeps random values; nil: they are kept in memory only.
	Revisions *revisions.Store
	// Scheme knows the kinds of typed objects.
	Scheme *runtime.Scheme
	// Leading fails if this process may not write any more.
	Leading func() error
	// HooksOnRestore: hooks of an installation run also for a component that was restored.
	HooksOnRestore bool
	// Preview: nothing is kept and no event is made, because nothing is applied.
	Preview bool
}

// Request is what is rendered: a component, and the namespace and the name of its deployment.
type Request struct {
	Component       identity.Component
	Namespace, Name string
	// Revision is what is rendered, and Rendered says that it was rendered before.
	Revision revisions.Revision
	Rendered bool
	// Pending: the revision has not started, so that the history does not get its objects yet.
	Pending bool
	// Stored is the digest of what the history has of the revision; empty if it has nothing.
	Stored string
	// Adopted is what a Helm release has rendered that the component takes over; nil if there is none, or if its
	// random values are kept already.
	Adopted *Adopted
	// HooksRan: the hooks of the revision have run before the component existed.
	HooksRan bool
	// IsNew: no revision of the component was applied, and it takes over no Helm release.
	IsNew bool
	// RestoredFrom is the uid of the component that owned the objects before a restore; empty if none is known.
	RestoredFrom apitypes.UID
	// Retention says how many revisions the history has.
	revisions.Retention
}

// Rendering is what is to be applied for a component.
type Rendering struct {
	Objects []client.Object
	// Namespace is that of the deployment, where objects without a namespace belong.
	Namespace string
	// Digest identifies the objects as they were rendered.
	Digest string
	// Stored is the digest of what the history has of the revision; empty if it has nothing.
	Stored string
	// RestoredFrom is the uid of the component that owned the objects before a restore; empty if none is known.
	RestoredFrom apitypes.UID
	// Pinned says what is different if the manifests are those of an earlier revision.
	Pinned Pinned
	// unsaved is what is to be added to the history.
	unsaved *revisions.Set
}

// Render renders the dependent objects, and returns those to apply. Last is the last rendering
// of the component, and is updated.
func (r *Renderer) Render(ctx context.Context, request Request, last *Last) (Rendering, error) {
	last.start(request, r.Now())
	before := *last
	objects, read, err := r.render(renders.WithRollbackHooks(ctx, request.Limit > 0), &request, last)
	if err != nil {
		return Rendering{}, err
	}
	rendering := Rendering{
		Objects: r.forApply(objects), Namespace: request.Namespace, Digest: last.digest, Stored: request.Stored, RestoredFrom: request.RestoredFrom,
	}
	if rendering.unsaved, err = r.unsaved(ctx, request, last, objects); err == nil {
		err = r.keepValues(ctx, request, read, &rendering, &last.kept)
	}
	if err != nil {
		// What is not applied is not the last rendering.
		before.kept = last.kept
		*last = before
		return Rendering{}, err
	}
	return rendering, nil
}

// start starts the revision of the request, unless it is the one of the last rendering.
func (r *Last) start(request Request, now time.Time) {
	if r.kept.component == request.Component.GetUID() && r.kept.revision == request.Revision {
		return
	}
	if request.Adopted != nil && !request.Adopted.Time.IsZero() {
		now = request.Adopted.Time
	}
	next := kept{component: request.Component.GetUID(), revision: request.Revision, keptContent: keptContent{Time: now}}
	if r.kept.component == next.component {
		next.secret.record = r.kept.secret.record
	}
	r.kept = next
}

// render renders the dependent objects, and returns what was read for it. It notes in the request if the component was restored.
func (r *Renderer) render(ctx context.Context, of *Request, last *Last) (objects []client.Object, read *answers, err error) {
	err = r.Telemetry.Part(ctx, metrics.PhaseRender, func(ctx context.Context) error {
		ctx = renders.WithTime(ctx, last.kept.Time)
		if objects, read, err = r.generate(ctx, *of); err != nil {
			return err
		}
		again, err := r.findPrevious(ctx, of, objects, read)
		if err == nil && again {
			objects, read, err = r.generate(ctx, *of)
		}
		return err
	})
	request := *of
	inputs := inputsOf(ctx, request.Component)
	if err != nil || inputs == "" {
		return objects, read, err
	}
	if read.random.Used() || (request.Rendered || request.carries()) && read.asked.Load() || !last.kept.isEmpty() {
		if objects, read, err = r.keepRandom(ctx, request, inputs, objects, read, &last.kept); err != nil {
			return nil, nil, err
		}
	}
	finding := ""
	current := Last{inputs: inputs, answers: read.digest(), digest: digestOfObjects(r.followed(objects)), objects: objects}
	before := last.findings()
	chosen, held := last.accept(current, r.Now(), func() (explained bool) {
		explained, finding = r.renderAgain(ctx, request, current, read, &last.kept)
		return explained && last.answers != current.answers
	})
	if finding != "" {
		last.finding = finding
	}
	if held {
		r.Telemetry.CountHeldBack()
		logf.FromContext(ctx).V(1).Info("the rendered manifests are held back, because they change without a cause")
	}
	if findings := last.findings(); !r.Preview && len(before) == 0 && len(findings) > 0 {
		r.Telemetry.Warn(request.Component, reasonNonDeterministic, telemetry.Apply, findings[0])
	}
	return chosen, read, nil
}

// renderAgain renders once more after an unexpected change. It reports whether the cluster
// may explain the change: the manifests are the same again, or what the generator reads
// has changed meanwhile. If not, the finding says where they differ.
//
// While something that the generator reads does not exist, a difference is no finding: a
// template that generates a password unless it finds the Secret with it generates another
// one each time until the Secret is there.
func (r *Renderer) renderAgain(ctx context.Context, request Request, current Last, read *answers, k *kept) (explained bool, finding string) {
	ctx, origins := renders.WithOrigins(ctx)
	next, readAgain, err := r.generate(renders.WithTime(ctx, k.Time), request)
	if err != nil {
		// If it is more than a coincidence, it will happen again: the same is rendered again soon.
		logf.FromContext(ctx).Info("could not render again to see whether the manifests are the same", "error", err.Error())
		return false, ""
	}
	k.restore(next)
	followed := r.followed(next)
	if digestOfObjects(followed) == current.digest || readAgain.digest() != current.answers {
		return true, ""
	}
	places := difference.Between(followed, r.followed(current.objects), maxPlaces)
	if len(places) == 0 || read.foundNothing.Load() {
		return false, ""
	}
	if confidential.Is(ctx) {
		for i := range places {
			places[i].Path = confidential.Path(places[i].Path)
		}
	}
	return false, findingOf(places, origins)
}

var errNoClient = errors.New("the context holds no client of the target cluster")

// withClients wraps the clients of a context.
func withClients(ctx context.Context, wrap func(client.Client) client.Client) context.Context {
	known := manifests.FromContext(ctx)
	for _, c := range []*client.Client{&known.Client, &known.LocalClient} {
		if *c != nil {
			*c = wrap(*c)
		}
	}
	return known.In(ctx)
}

// generate renders the dependent objects, and returns what was read for it. The generator
// gets a copy of the component, because it may run on after its deadline.
func (r *Renderer) generate(ctx context.Context, request Request) ([]client.Object, *answers, error) {
	theirs, err := identity.Copy(request.Component)
	if err != nil {
		return nil, nil, err
	}
	known, read := manifests.FromContext(ctx), &answers{}
	known.Component = theirs
	ctx, read.random = renders.WithRandomness(withClients(known.In(ctx), func(c client.Client) client.Client { return &noting{c, read} }))
	objects, err := r.Run(ctx, client.ObjectKeyFromObject(theirs), func(ctx context.Context) ([]client.Object, error) {
		generator := Patched(r.Generator, r.SecretPatches, func() ([]v1alpha1.Patch, []v1alpha1.Image) { return r.Patches(theirs) })
		rendered, err := manifests.Generate(ctx, generator, request.Namespace, request.Name, r.Parameters(theirs))
		if err != nil {
			return nil, confidential.Failure(ctx, err)
		}
		converted, err := untyped.List(rendered, r.Scheme) // here, because the methods of typed objects may panic
		if err != nil {
			return nil, confidential.Failure(ctx, err)
		}
		objects := make([]client.Object, len(converted))
		for i, object := range converted {
			objects[i] = object
		}
		outputs.Annotate(r.Self.Name, r.Outputs, objects)
		renders.KeepOrigins(ctx, rendered, objects)
		return objects, nil
	})
	if err != nil {
		return nil, read, err
	}
	if request.HooksRan {
		if objects, err = r.withoutHooksThatRan(ctx, request, objects, read); err != nil {
			return nil, read, err
		}
	}
	read.noteServed(ctx)
	return objects, read, nil
}

// followed returns the objects with a manifest that counts with every rendering. One that is
// applied once, such as a generated password, may be rendered in any way.
func (r *Renderer) followed(objects []client.Object) []client.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(object client.Object) bool {
		return strings.EqualFold(r.Self.Value(object, v1alpha1.AnnotationReconcilePolicy), string(v1alpha1.ReconcilePolicyOnce))
	})
}

// findingOf names objects, fields and templates, but no values: they may be secret.
func findingOf(places []difference.Place, origins *renders.Origins) string {
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

// Patched returns the generator with the patches of a component, which are read when it is
// called. They are part of the spec, and thereby of the digest of the component. A patch that
// cannot be applied is a mistake in the spec. So is one that names a Secret, unless patches may change Secrets:
// by the operation test, or by a copy into an annotation, a user would find out the values.
func Patched(g manifests.Generator, secrets bool, read func() ([]v1alpha1.Patch, []v1alpha1.Image)) manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		patches, images := read()
		if len(patches) == 0 && len(images) == 0 {
			return manifests.Generate(ctx, g, namespace, name, parameters)
		}
		beside := transform.Beside{Others: func(ctx context.Context) ([]client.Object, error) {
			// Hooks of a chart for the installation are not rendered for an upgrade, and the
			// other way round. A patch of one is no mistake, although it changes nothing now.
			known := manifests.FromContext(ctx)
			known.Upgrade = !known.Upgrade
			return manifests.Generate(known.In(ctx), g, namespace, name, parameters)
		}}
		if !secrets {
			beside.NoSecrets = errNoSecrets
		}
		transformer, err := transform.PatchesBeside(patches, images, beside)
		if err != nil {
			return nil, wrongPatches(err)
		}
		objects, err := manifests.Generate(ctx, g, namespace, name, parameters)
		if err != nil {
			return nil, err
		}
		changed, err := manifests.TransformObjects(ctx, transformer, namespace, name, objects)
		if err != nil && ctx.Err() == nil { // otherwise it exceeded the time limit, perhaps on a slow machine
			return nil, wrongPatches(err)
		}
		return changed, err
	})
}

var errNoSecrets = errors.New("it changes a Secret, which this operator does not let patches do: its author allows it by the option AllowSecretPatches")

func wrongPatches(err error) error {
	return &verdict.InvalidError{Err: fmt.Errorf("patches of the component: %w", err)}
}
