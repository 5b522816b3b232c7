// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apitypes "k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// PlanRequest says what is planned.
type PlanRequest[T Component] struct {
	// Key names the component.
	Key client.ObjectKey
	// Edited is the component with changes that are not stored. Its metadata and its spec count,
	// with the defaults that the server adds in a dry run. A field that is not omitted from the JSON
	// although it is empty gets none: take the component from a dry run then. The status is that of the stored
	// component, if there is one. Nil means the component as it is stored.
	Edited T
	// Manifest is the component with changes as a file has it, in place of Edited: the server adds the defaults of
	// all fields that it leaves out. Its spec counts whole. Its labels and annotations are added to those that
	// are stored; if it has a resourceVersion, so that it was read from the server, they take their place.
	Manifest *unstructured.Unstructured
	// Delete plans the deletion of the component.
	Delete bool
	// Generator takes the place of the generator of the reconciler, as another version of
	// the operator would have it. Nil means that of the reconciler.
	Generator manifests.Generator
}

// planRequest is a PlanRequest for components of any type. It has no Edited.
type planRequest struct {
	PlanRequest[Component]
	// replacesMetadata: labels and annotations of the Manifest take the place of the stored ones.
	replacesMetadata bool
	// mustBeAdmitted: a Manifest that the server does not admit is an error, not an incomplete plan.
	mustBeAdmitted bool
	// withManifests: the plan has the manifests.
	withManifests bool
	// uid is the uid of the component; empty if it may have any.
	uid apitypes.UID
}

// Plan is everything that the reconciler would do for a component until the component is ready, or
// gone. It is a value; its JSON has the version of report.PlanVersion.
type Plan struct {
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace,omitempty"`
	Name      string       `json:"name"`
	UID       apitypes.UID `json:"uid,omitempty"`
	// Revision is what the component has then.
	Revision int64 `json:"revision,omitempty"`
	// Remote: the objects are in another cluster than the component.
	Remote bool `json:"remote,omitempty"`
	// RollbackTo is the revision that the component is pinned to; 0 if to none.
	RollbackTo int64 `json:"rollbackTo,omitempty"`
	// Turn says why the component keeps its version for now, by its annotation rollout or its status; empty if they say nothing of that, or if
	// the status is about another generator than the plan.
	Turn string `json:"turn,omitempty"`
	// Source is what is rendered.
	Source *v1alpha1.Source `json:"source,omitempty"`
	// Hash identifies the component, its revision, what that is rendered from and the manifests,
	// and what is done to which objects and fields. It is empty for a deletion.
	Hash string `json:"hash,omitempty"`
	report.Plan

	// manifests are what is applied; nil if they are not asked for.
	manifests *preview.Manifests
}

// Plan returns what the reconciler would do for a component: as it is stored, as it would be after an
// edit, for its deletion, or with another generator. It writes nothing but the operator's own digest
// key, if there is none yet; the server is asked about each changed object by a dry run. Hooks run
// only if they are marked by PreviewSafe.
//
// An error is that which the reconcile would end with, or says that the target cluster does not answer,
// or was in use by other components for 30 seconds. Plan fails before the setup.
func (r *Reconciler[T]) Plan(ctx context.Context, request PlanRequest[T]) (Plan, error) {
	running := r.running.Load()
	if running == nil {
		return Plan{}, fmt.Errorf("reconciler %s: Plan was called before SetupWithManager", r.settings.Name)
	}
	asked := planRequest{PlanRequest: PlanRequest[Component]{Key: request.Key, Manifest: request.Manifest, Delete: request.Delete, Generator: request.Generator}}
	if request.Manifest == nil && !renders.IsNil(request.Edited) {
		asked.Manifest, asked.replacesMetadata = &unstructured.Unstructured{}, true
		if err := convert(request.Edited, &asked.Manifest.Object); err != nil {
			return Plan{}, fmt.Errorf("the edited %s %s: %w", running.handler.self.Kind.Kind, request.Key, err)
		}
		asked.Manifest.SetGroupVersionKind(running.handler.self.Kind)
	}
	return running.handler.planner.plan(ctx, asked)
}

// PlanAll plans all components that the reconciler has, as an upgrade of the operator would change
// them if the generator is that of its next version; nil means the generator of the reconciler.
// As many as concurrency are planned at the same time; less than 1 means 4. Planned is called for
// each of them, never by two at once. If namespaces are named, only their components are planned.
// The error says why the components cannot be listed.
func (r *Reconciler[T]) PlanAll(ctx context.Context, generator manifests.Generator, concurrency int, planned func(client.ObjectKey, Plan, error), namespaces ...string) error {
	running := r.running.Load()
	if running == nil {
		return fmt.Errorf("reconciler %s: PlanAll was called before SetupWithManager", r.settings.Name)
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var keys []client.ObjectKey
	for _, namespace := range namespaces {
		found, err := running.handler.planner.listKeys(ctx, namespace)
		if err != nil {
			return err
		}
		keys = append(keys, found...)
	}
	if concurrency < 1 {
		concurrency = defaultPlans
	}
	var mu sync.Mutex
	workqueue.ParallelizeUntil(ctx, concurrency, len(keys), func(i int) {
		var plan Plan
		err := guard.Call(func() (err error) {
			plan, err = r.Plan(ctx, PlanRequest[T]{Key: keys[i], Generator: generator})
			return err
		})
		mu.Lock()
		defer mu.Unlock()
		planned(keys[i], plan, err)
	})
	return ctx.Err()
}

// defaultPlans is how many components are planned at the same time.
const defaultPlans = 4

// listKeys returns the components of a namespace, or of all, that the reconciler selects.
func (pl *planner) listKeys(ctx context.Context, namespace string) ([]client.ObjectKey, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(pl.self.ListKind())
	var keys []client.ObjectKey
	for {
		if err := pl.local.List(ctx, list, &client.ListOptions{Namespace: namespace, LabelSelector: pl.settings.selector, Limit: 500, Continue: list.Continue}); err != nil {
			return nil, fmt.Errorf("list the components of kind %s: %w", pl.self.Kind.Kind, err)
		}
		for _, item := range list.Items {
			keys = append(keys, client.ObjectKeyFromObject(&item))
		}
		if list.Continue == "" {
			return keys, nil
		}
	}
}

// plan makes a plan. It goes the way of createOrUpdate and delete, on a copy of the component, and
// leaves out the writes.
func (pl *planner) plan(ctx context.Context, request planRequest) (Plan, error) {
	ctx = confidential.Start(ctx, false)
	obj, incomplete, err := pl.planned(ctx, request)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Kind: pl.self.Kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID()}
	if request.withManifests {
		p.manifests = &preview.Manifests{}
	}
	ctx = revision.InPreview(ctx)
	if request.Delete || !obj.GetDeletionTimestamp().IsZero() {
		err = pl.planDeletion(ctx, obj, &p)
	} else {
		generator := request.Generator
		if renders.IsNil(generator) {
			generator = pl.revisions.Renderer.Generator
		}
		err = pl.planApply(ctx, obj, generator, &p)
	}
	if incomplete != "" {
		p.Incomplete = append(p.Incomplete, incomplete)
	}
	return p, err
}

// read reads a component. It is an error if the component does not have the uid; an empty one counts as any.
func (pl *planner) read(ctx context.Context, key client.ObjectKey, uid apitypes.UID) (Component, error) {
	obj := pl.author.new()
	if err := pl.local.Get(ctx, key, obj); err != nil {
		return obj, fmt.Errorf("read %s %s: %w", pl.self.Kind.Kind, key, err)
	}
	if uid != "" && obj.GetUID() != uid {
		return obj, fmt.Errorf("%s %s was replaced by another one", pl.self.Kind.Kind, key)
	}
	return obj, nil
}

// planned returns the component to plan, and says why it may be incomplete.
func (pl *planner) planned(ctx context.Context, request planRequest) (obj Component, incomplete string, err error) {
	stored, err := pl.read(ctx, request.Key, request.uid)
	exists := err == nil
	if request.Manifest == nil || !exists && (request.uid != "" || !apierrors.IsNotFound(err)) {
		return stored, "", err
	}
	if got := request.Manifest.GroupVersionKind(); got != pl.self.Kind {
		return stored, "", fmt.Errorf("the edited object is a %s of %s, not a %s of %s", got.Kind, got.GroupVersion(), pl.self.Kind.Kind, pl.self.Kind.GroupVersion())
	}
	edited := request.Manifest.DeepCopy()
	unstructured.RemoveNestedField(edited.Object, "status")
	edited.SetNamespace(request.Key.Namespace)
	edited.SetName(request.Key.Name)
	edited.SetManagedFields(nil)
	edited.SetUID("")
	replacesMetadata := request.replacesMetadata || edited.GetResourceVersion() != ""
	edited.SetResourceVersion("")
	var asked *unstructured.Unstructured
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error { // the status may be written meanwhile
		asked = edited.DeepCopy()
		if !exists {
			return pl.local.Create(ctx, asked, client.DryRunAll, client.FieldOwner(pl.self.FieldOwner))
		}
		asked.SetUID(stored.GetUID())
		asked.SetResourceVersion(stored.GetResourceVersion())
		asked.SetFinalizers(stored.GetFinalizers())
		asked.SetOwnerReferences(stored.GetOwnerReferences())
		if !replacesMetadata {
			asked.SetLabels(labels.Merge(stored.GetLabels(), asked.GetLabels()))
			asked.SetAnnotations(labels.Merge(stored.GetAnnotations(), asked.GetAnnotations()))
		}
		err := pl.local.Update(ctx, asked, client.DryRunAll, client.FieldOwner(pl.self.FieldOwner))
		if apierrors.IsConflict(err) {
			var unread error
			if stored, unread = pl.read(ctx, request.Key, request.uid); unread != nil {
				return unread
			}
		}
		return err
	})
	switch {
	case err == nil:
	case !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err):
		return stored, "", pl.self.About(edited, fmt.Errorf("the server refuses the edited component: %w", err))
	default: // the right to the dry run is missing, or a webhook allows none: the component counts as it is
		incomplete = "the defaults and the rules of the definition of the component are not applied: " + err.Error()
		if request.mustBeAdmitted {
			return stored, "", pl.self.About(stored, fmt.Errorf("the edited component is not planned, because the server does not admit it: %s", incomplete))
		}
	}
	obj = pl.author.new()
	unstructured.RemoveNestedField(asked.Object, "status")
	if err := convert(asked.Object, obj); err != nil {
		return stored, "", fmt.Errorf("the edited %s %s: %w", pl.self.Kind.Kind, request.Key, err)
	}
	*obj.GetStatus() = *stored.GetStatus().DeepCopy()
	switch {
	case !exists:
		obj.SetUID("") // each dry run has another one
		obj.SetGeneration(1)
	case incomplete != "":
		obj.SetGeneration(stored.GetGeneration() + 1)
		obj.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	}
	return obj, incomplete, nil
}

// convert converts a value as a client of the API server does: the converter of apimachinery panics on some types of authors.
func convert(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(text, into)
}

// planApply plans like createOrUpdate.
func (pl *planner) planApply(ctx context.Context, obj Component, generator manifests.Generator, p *Plan) error {
	resolved, t, err := pl.planTarget(ctx, obj, pl.annotationMistakes(obj), p)
	if err != nil {
		return err
	}
	defer t.Release()
	ctx = pl.basicContext(ctx)
	source := pl.revisions.Preview(generator)
	if err := source.AdoptRelease(ctx, obj, t, &resolved.Deployment, &resolved.policies); err != nil {
		return err
	}
	left, err := pl.code.previewHooks(ctx, postRead, obj)
	if err != nil {
		return err
	}
	candidate, err := source.Candidate(ctx, obj, t, resolved.Deployment, pl.manifestDigest(t, resolved))
	if err != nil {
		return err
	}
	digests, pinned := candidate.Digests, candidate.Pin
	p.Turn = pl.fleet.Planned(obj, candidate)
	status := revision.Of(obj)
	number, before := status.Revision, status.Processing().Manifests != ""
	status.StartProcessing(obj.GetGeneration(), digests, pl.now())
	ctx = revision.ContextWithRevision(ctx, t, digests.Component, status)
	notRun, err := pl.code.previewHooks(ctx, preReconcile, obj)
	if err != nil {
		return err
	}
	toRender := pl.revisions.Request(obj, resolved.Deployment, digests.Revision, before && status.Revision == number)
	var origins *renders.Origins
	if p.manifests != nil {
		ctx, origins = renders.WithOrigins(ctx)
	}
	rendered, err := source.Objects(ctx, obj, toRender, pinned, &rendering.Last{})
	if err != nil {
		return err
	}
	if p.manifests != nil {
		if *p.manifests, err = manifestsOf(obj, resolved.Name, rendered, origins); err != nil {
			return pl.self.About(obj, err)
		}
		p.manifests.DefaultValues = renders.DefaultValues(generator)
	}
	known := renderCache{inputs: inputs{config: resolved}, appliedRevision: appliedRevision{digest: digests.Component, pin: pinned, pinned: rendered.Pinned}}
	known.allowEmpty, _ = flagOf(obj, pl.self.Annotation(vocabulary.AnnotationAllowEmpty))
	p.Revision, p.RollbackTo, p.Source = status.Revision, pinned.To, revision.GeneratorSource(generator)
	if err := pl.planRendered(ctx, obj, t, known, rendered, digests, p); err != nil {
		return err
	}
	if p.RollbackTo == 0 {
		found, _ := pl.author.finder.Find(specOf(obj))
		p.Notes = append(p.Notes, pl.terms().Notes(found, obj)...)
	}
	for _, hook := range append(left, notRun...) {
		p.Incomplete = append(p.Incomplete, hook+" is not run for a plan, because it is not marked by PreviewSafe")
	}
	return nil
}

// planRendered plans the application of rendered objects.
func (pl *planner) planRendered(ctx context.Context, obj Component, t targets.Connection, known renderCache, rendered rendering.Rendering, digests revision.Digests, p *Plan) error {
	inventory, err := pl.records.Read(ctx, obj)
	if err != nil {
		return err
	}
	known.config.Namespace = rendered.Namespace
	request, err := pl.applyRequest(obj, known, rendered.Objects, inventory)
	if err != nil {
		return err
	}
	if p.Plan, err = t.Engine.Plan(ctx, request); err != nil {
		return pl.aboutTarget(obj, err)
	}
	key, err := pl.digestKey(ctx)
	if err != nil {
		return err
	}
	p.Hash = p.hash(obj.GetUID(), digests.Revision, digest.Hasher{Key: key}.Combine("plan", rendered.Digest)) // manifests may hold secrets
	return nil
}

// planDeletion plans like delete.
func (pl *planner) planDeletion(ctx context.Context, obj Component, p *Plan) error {
	resolved, t, err := pl.planTarget(ctx, obj, nil, p)
	if err != nil {
		return err
	}
	defer t.Release()
	ctx = pl.basicContext(ctx)
	left, err := pl.code.previewHooks(ctx, postRead, obj)
	if err != nil {
		return err
	}
	digests, err := pl.revisions.Digests(ctx, obj)
	if err != nil {
		return err
	}
	ctx = revision.ContextWithRevision(ctx, t, digests.Component, revision.Of(obj))
	inventory, err := pl.records.Read(ctx, obj)
	if err != nil {
		return err
	}
	request, err := pl.deleteRequest(obj, inventory, resolved.managedTypes)
	if err != nil {
		return err
	}
	if blocked, err := pl.blockedDeletion(ctx, obj, t, request); err != nil || len(blocked) > 0 {
		p.Plan = report.Plan{Version: report.PlanVersion, Changes: blocked}
		return err
	}
	if err := pl.deletion.addDeleteHooks(ctx, pl.revisions.Preview(pl.revisions.Renderer.Generator), obj, &request, digests, &rendering.Last{}); err != nil {
		return err
	}
	if p.Plan, err = t.Engine.PlanDeletion(ctx, request); err != nil {
		return pl.aboutTarget(obj, err)
	}
	for _, point := range []hookPoint{preDelete, postDelete} {
		for i, hook := range pl.code.hooks[point] {
			if !hook.previewSafe {
				left = append(left, fmt.Sprintf("%s hook %d", point, i+1))
			}
		}
	}
	for _, hook := range left {
		p.Incomplete = append(p.Incomplete, hook+" is not run for a plan")
	}
	return nil
}

// blockedDeletion returns the objects that block the deletion of the component, before anything of it is deleted.
func (pl *planner) blockedDeletion(ctx context.Context, obj Component, t targets.Connection, request reconciler.DeleteRequest) ([]report.PlannedChange, error) {
	var blockers []report.Blocker
	var err error
	if !isEmpty(obj) {
		if blockers, err = t.Engine.DeletionBlockers(ctx, request); err != nil {
			return nil, err
		}
	}
	apiVersion, kind := pl.self.Kind.ToAPIVersionAndKind()
	component := report.Key{Group: pl.self.Kind.Group, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	var blocked []report.PlannedChange
	for _, blocker := range blockers {
		change := report.PlannedChange{Key: blocker.Key, Class: report.ChangeBlocked, Reason: string(report.WaitBlocked), Message: blocker.Message}
		if change.Key == (report.Key{}) { // of a pattern of types
			change.Key, change.APIVersion, change.Message = component, apiVersion, blocker.Dependent+": "+change.Message
		}
		blocked = append(blocked, change)
	}
	if foreign := pl.self.ForeignFinalizers(obj); foreign != "" {
		blocked = append(blocked, report.PlannedChange{
			Key: component, APIVersion: apiVersion, Class: report.ChangeBlocked, Reason: string(report.WaitBlocked), Message: foreign,
		})
	}
	return blocked, nil
}

// planTarget returns the configuration of the component and a connection to its target. The
// references are loaded, and not watched.
func (pl *planner) planTarget(ctx context.Context, obj Component, mistakes error, p *Plan) (resolvedConfig, targets.Connection, error) {
	resolved, access, absent, err := pl.resolve(ctx, obj, mistakes, func(ctx context.Context, obj Component) references.Absence {
		absent, _ := pl.readReferences(ctx, obj)
		return absent
	})
	if err := cmp.Or(absent, err); err != nil {
		return resolved, targets.Connection{}, err
	}
	p.Remote = access.Kubeconfig != nil
	if _, err := pl.digestKey(ctx); err != nil {
		return resolved, targets.Connection{}, err
	}
	var t targets.Connection
	connect := func(context.Context) (bool, error) {
		t, err = pl.targets.Connect(access, client.ObjectKey{}) // nothing is requeued for a plan
		if errors.Is(err, target.ErrBusy) {
			return false, nil
		}
		return true, err
	}
	if polled := wait.PollUntilContextTimeout(ctx, targetInterval, targetPatience, true, connect); polled != nil {
		return resolved, targets.Connection{}, pl.self.About(obj, cmp.Or(err, polled))
	}
	return resolved, t, nil
}

// While a target cluster is being checked or in use, a plan tries again in this interval, for so
// long.
const (
	targetInterval = 50 * time.Millisecond
	targetPatience = 30 * time.Second
)

// hash returns the hash of the plan for a component, the digest of what its revision is rendered
// from, and that of its manifests. The number of the revision is part of it, so that an approval counts once.
func (p Plan) hash(uid apitypes.UID, revision, manifests string) string {
	type change struct {
		Key   report.Key
		Class report.ChangeClass
		Paths []string
		More  int
	}
	var changes []change
	for _, planned := range p.Changes {
		c := change{Key: planned.Key, Class: planned.Class, More: planned.MoreFields}
		for _, field := range planned.Fields {
			c.Paths = append(c.Paths, field.Path)
		}
		changes = append(changes, c)
	}
	encoded, err := json.Marshal([]any{report.PlanVersion, uid, p.Revision, revision, manifests, changes})
	if err != nil {
		return "" // texts can be encoded
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:10])
}

// manifestsOf returns the rendered objects for an answer. Its values have no inputs of requirements, which may be secret.
func manifestsOf(obj Component, name string, rendered rendering.Rendering, origins *renders.Origins) (preview.Manifests, error) {
	of := preview.Manifests{Namespace: rendered.Namespace, Name: name}
	values, err := revision.Parameters(obj.GetSpec())
	if err == nil {
		err = utiljson.Unmarshal(values, &of.Values)
	}
	if err != nil {
		return of, fmt.Errorf("the parameters of its manifests: %w", err)
	}
	for _, object := range rendered.Objects {
		of.Objects = append(of.Objects, preview.Manifest{File: origins.Of(object), Object: object.(*unstructured.Unstructured).DeepCopy().Object})
	}
	return of, nil
}
