// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Users ask the operator what it would do for a component by an annotation; package
// internal/preview has the protocol.

const (
	// previewWorkers is how many requests for previews are answered at the same time.
	//
	// Limit: the requests for previews that an operator answers at the same time, one of each component.
	previewWorkers = 2
	// maxPreviews is how many requests about a component wait, and how many answers are kept.
	//
	// Limit: the waiting requests for previews of one component, and its answers.
	maxPreviews = 8
	// maxWaitingPreviews is how many requests wait in all.
	//
	// Limit: the waiting requests for previews of all components; further ones are dropped.
	maxWaitingPreviews = 64
	// previewTimeout bounds an answer.
	//
	// Limit: the time of the answer to a request for a preview.
	previewTimeout = 50 * time.Second
)

// previews answers requests for previews.
type previews struct {
	*planner
	life time.Duration
	// leads is closed when this process leads.
	leads <-chan struct{}
	// components are those with something to do: requests to answer, or Secrets to delete.
	components workqueue.TypedDelayingInterface[client.ObjectKey]

	mu     sync.Mutex
	about  map[client.ObjectKey]*previewsOf
	queued int // requests of all components
}

// previewsOf is what is known of the requests about one component.
type previewsOf struct {
	owner preview.Owner
	// asked is the annotation as it was seen last.
	asked   string
	waiting []previewRequest
	kept    []keptPreview
	// unknown: this process has started since, and there may be Secrets that it does not know of.
	unknown bool
}

// previewRequest is a request that waits.
type previewRequest struct {
	preview.Request
	// perhapsAnswered: the process before this one may have answered it.
	perhapsAnswered bool
}

// keptPreview is a Secret to delete.
type keptPreview struct {
	name string
	uid  types.UID
	due  time.Time
}

func newPreviews(pl *planner, leads <-chan struct{}) *previews {
	return &previews{
		planner: pl, leads: leads, life: preview.Life, about: map[client.ObjectKey]*previewsOf{},
		components: workqueue.NewTypedDelayingQueue[client.ObjectKey](),
	}
}

// events takes the requests from the events about components. It requeues no component.
func (p *previews) events() ctrlhandler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	annotation := p.self.Annotation(vocabulary.AnnotationPreview)
	return ctrlhandler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ queue) {
			p.see(ctx, e.Object, e.Object.GetAnnotations()[annotation], true)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ queue) {
			if asked := e.ObjectNew.GetAnnotations()[annotation]; asked != e.ObjectOld.GetAnnotations()[annotation] {
				p.see(ctx, e.ObjectNew, asked, false)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.drop(client.ObjectKeyFromObject(e.Object)) // the garbage collector removes its Secrets
		},
	}
}

// see takes a request. One that the component has had since before this process may be old, or answered.
func (p *previews) see(ctx context.Context, obj client.Object, asked string, before bool) {
	key, log := client.ObjectKeyFromObject(obj), logf.FromContext(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	standsBy := false
	select {
	case <-p.leads:
	default: // another process answers; what the annotation has when this one begins to lead may be left to it
		standsBy, before = true, true
		p.drop(key)
	}
	if asked == "" {
		return
	}
	request, err := preview.ParseRequest(asked)
	if err != nil {
		log.Info("ignored the annotation that asks for a preview", "namespace", key.Namespace, "name", key.Name, "error", err.Error())
		return
	}
	of := p.about[key]
	if of == nil || of.owner.UID != obj.GetUID() {
		p.drop(key)
		of = &previewsOf{owner: p.ownerOf(obj)}
		p.about[key] = of
	}
	of.asked, of.unknown = asked, of.unknown || before
	switch {
	case before && request.IsExpired(p.now()): // what is left of it is removed
	case !standsBy && (len(of.waiting) >= maxPreviews || p.queued >= maxWaitingPreviews):
		log.Info("dropped a request for a preview: too many are waiting", "namespace", key.Namespace, "name", key.Name)
	default:
		of.waiting = append(of.waiting, previewRequest{request, before})
		p.queued++
	}
	p.components.Add(key)
}

// ownerOf returns the component as the owner of its answers.
func (p *previews) ownerOf(obj client.Object) preview.Owner {
	apiVersion, kind := p.self.Kind.ToAPIVersionAndKind()
	return preview.Owner{
		Reconciler: p.self.Name, APIVersion: apiVersion, Kind: kind, Name: obj.GetName(), UID: obj.GetUID(),
		Namespace: cmp.Or(obj.GetNamespace(), p.settings.operatorNamespace),
	}
}

// drop drops what is known about a component.
func (p *previews) drop(key client.ObjectKey) {
	if of := p.about[key]; of != nil {
		p.queued -= len(of.waiting)
		delete(p.about, key)
	}
}

// run answers requests and deletes answers until the context ends. The manager runs it in the leader.
func (p *previews) run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range previewWorkers {
		workers.Go(func() {
			for {
				key, shutdown := p.components.Get()
				if shutdown {
					return
				}
				if ctx.Err() == nil {
					p.work(ctx, key)
				}
				p.components.Done(key)
			}
		})
	}
	<-ctx.Done()
	p.components.ShutDown()
	workers.Wait()
	return nil
}

// work does what is to be done about one component. Its queue works on each component once at a time.
func (p *previews) work(ctx context.Context, key client.ObjectKey) {
	log := logf.FromContext(ctx).WithValues("namespace", key.Namespace, "name", key.Name)
	ctx = logf.IntoContext(ctx, log)
	if err := p.settings.leaderLock.leading(); err != nil {
		p.components.AddAfter(key, creating) // the process ends, or leads again
		return
	}
	of, request, unknown := p.next(key)
	if of == nil {
		return
	}
	if unknown {
		p.takeOver(ctx, key, of)
	}
	if request != nil {
		kept, err := p.answer(ctx, key, of.owner, *request)
		if err != nil {
			log.Error(err, "a request for a preview cannot be answered", "request", request.String())
		}
		if kept != nil {
			p.keep(key, of, *kept)
		}
	}
	p.deleteDue(ctx, key, of)
}

// next takes the next request about a component.
func (p *previews) next(key client.ObjectKey) (of *previewsOf, request *previewRequest, unknown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of = p.about[key]; of == nil {
		return nil, nil, false
	}
	unknown, of.unknown = of.unknown, false
	if len(of.waiting) > 0 {
		request, of.waiting = &of.waiting[0], of.waiting[1:]
		p.queued--
	}
	if len(of.waiting) > 0 {
		p.components.Add(key)
	}
	return of, request, unknown
}

// keep has a Secret deleted when it is due. Beyond some of them, the oldest are due at once.
func (p *previews) keep(key client.ObjectKey, of *previewsOf, secrets ...keptPreview) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	of.kept = append(of.kept, secrets...)
	for i := range max(len(of.kept)-maxPreviews, 0) {
		of.kept[i].due = now
	}
	for _, secret := range secrets {
		p.components.AddAfter(key, secret.due.Sub(now))
	}
}

// takeOver finds the Secrets that the process before this one has left.
func (p *previews) takeOver(ctx context.Context, key client.ObjectKey, of *previewsOf) {
	list, owner := &metav1.PartialObjectMetadataList{}, of.owner
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := p.local.List(ctx, list, client.InNamespace(owner.Namespace), client.MatchingLabels(owner.Labels()), client.MatchingFields{"type": string(owner.SecretType())}); err != nil {
		logf.FromContext(ctx).Info("answers to requests for previews that an earlier process has left stay until the component is gone", "error", err.Error())
	}
	var found []keptPreview
	for _, item := range list.Items {
		if preview.IsName(item.Name) {
			found = append(found, keptPreview{item.Name, item.UID, item.CreationTimestamp.Add(p.life)})
		}
	}
	slices.SortFunc(found, func(a, b keptPreview) int { return a.due.Compare(b.due) })
	p.keep(key, of, found...)
}

// deleteDue deletes the Secrets that are due, and the annotation if nothing is left that it is about.
func (p *previews) deleteDue(ctx context.Context, key client.ObjectKey, of *previewsOf) {
	now, log := p.now(), logf.FromContext(ctx)
	due := p.takeDue(of, now)
	for _, secret := range due {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: of.owner.Namespace, Name: secret.name}}
		err := p.local.Delete(ctx, object, client.Preconditions{UID: &secret.uid})
		if client.IgnoreNotFound(err) == nil || apierrors.IsConflict(err) {
			continue
		}
		log.Error(err, "an answer to a request for a preview cannot be deleted", "secret", secret.name)
		if !apierrors.IsForbidden(err) { // otherwise it stays until the component is gone
			p.keep(key, of, keptPreview{secret.name, secret.uid, now.Add(previewRetry)})
		}
	}
	if p.finish(key, of, len(due) > 0, now) {
		if err := p.removeAnnotation(ctx, key, of); err != nil {
			log.Error(err, "the annotation that asked for a preview cannot be removed")
		}
	}
}

// previewRetry is when the deletion of an answer that failed is tried again.
const previewRetry = time.Minute

// takeDue returns the Secrets of a component that are due, and forgets them.
func (p *previews) takeDue(of *previewsOf, now time.Time) (due []keptPreview) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of.kept = slices.DeleteFunc(of.kept, func(secret keptPreview) bool {
		if now.Before(secret.due) {
			return false
		}
		due = append(due, secret)
		return true
	})
	return due
}

// finish forgets a component with nothing left to do, and reports whether its annotation is to be removed. If nothing was
// deleted and the request is no old one, another operator has answered it.
func (p *previews) finish(key client.ObjectKey, of *previewsOf, deleted bool, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.about[key] != of || len(of.kept)+len(of.waiting) > 0 {
		return false
	}
	delete(p.about, key)
	request, err := preview.ParseRequest(of.asked)
	return deleted || err == nil && request.IsExpired(now)
}

// removeAnnotation removes the annotation of a component if it is still the last one that was seen.
func (p *previews) removeAnnotation(ctx context.Context, key client.ObjectKey, of *previewsOf) error {
	path := "/metadata/annotations/" + p.self.Name + "~1" + vocabulary.AnnotationPreview
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": of.owner.UID},
		{"op": "test", "path": path, "value": of.asked},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return err
	}
	component := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	component.SetGroupVersionKind(p.self.Kind)
	err = p.local.Patch(ctx, component, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(p.settings.FieldOwner))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another request stands in its place
	}
	return err
}

// answer answers a request, and returns the Secret to delete. There is none if another operator answers.
func (p *previews) answer(ctx context.Context, key client.ObjectKey, owner preview.Owner, request previewRequest) (*keptPreview, error) {
	answered, secret := owner.Secret(request.Request), &corev1.Secret{}
	due := p.now().Add(p.life)
	var read bool
	if request.Action == preview.ActionEdited || request.perhapsAnswered {
		err := p.local.Get(ctx, client.ObjectKeyFromObject(answered), secret)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("read Secret %s/%s: %w", answered.Namespace, answered.Name, err)
		case err == nil && !owner.Owns(secret):
			return nil, fmt.Errorf("Secret %s/%s has another type or is about another component; it is left as it is", answered.Namespace, answered.Name)
		case err == nil && preview.IsAnswered(secret):
			return nil, nil // takeOver has found it
		}
		if read = err == nil; !read && request.Action == preview.ActionEdited {
			return nil, nil // it was withdrawn
		}
	}
	answer, err := p.compute(ctx, key, owner, request.Request, secret)
	if err != nil {
		answer = preview.Answer{Error: err.Error()}
	}
	answer.Request = request.String()
	if !read {
		if err := preview.SetAnswer(answered, answer); err != nil {
			return nil, err
		}
		err := p.local.Create(ctx, answered, client.FieldOwner(p.settings.FieldOwner))
		if apierrors.IsAlreadyExists(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("write the answer: %w", err)
		}
		return &keptPreview{answered.Name, answered.UID, due}, nil
	}
	before := secret.DeepCopy()
	kept := &keptPreview{secret.Name, secret.UID, due}
	if err := preview.SetAnswer(secret, answer); err != nil {
		return kept, err
	}
	err = p.local.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(p.settings.FieldOwner))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // otherwise it was answered by another process, or withdrawn
		return kept, fmt.Errorf("write the answer: %w", err)
	}
	return kept, nil
}

// compute makes the answer. Its error is one for the user.
func (p *previews) compute(ctx context.Context, key client.ObjectKey, owner preview.Owner, request preview.Request, secret *corev1.Secret) (answer preview.Answer, err error) {
	defer guard.Into(&err) // an edited component can be one that no code has met
	ctx, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	if request.Action == preview.ActionDiff {
		changes, beside, err := p.diffRevisions(ctx, key, owner.UID, request.From, request.To)
		if err != nil {
			return preview.Answer{}, err
		}
		hidden := hideValues(changes, beside)
		text, err := json.Marshal(append([]report.PlannedChange{}, changes...)) // a list, also if nothing differs
		return preview.Answer{Changes: text, Hidden: hidden}, err
	}
	asked := planRequest{uid: owner.UID, withManifests: request.Action == preview.ActionManifests}
	asked.Key, asked.Delete = key, request.Action == preview.ActionDelete
	if request.Action == preview.ActionEdited {
		object, err := preview.EditedIn(secret)
		if err != nil {
			return preview.Answer{}, err
		}
		asked.Manifest, asked.mustBeAdmitted = &unstructured.Unstructured{Object: object}, true
	}
	plan, err := p.plan(ctx, asked)
	if err != nil {
		return preview.Answer{}, err
	}
	hidden := hideValues(plan.Changes, func(object report.Key) bool { return object.Namespace == owner.Namespace && !plan.Remote })
	if plan.manifests != nil {
		if plan.Remote {
			plan.manifests.Values = nil
		}
		beside := p.beside(owner.Namespace, plan.Remote, plan.manifests.Namespace)
		for i := range plan.manifests.Objects {
			manifest := &plan.manifests.Objects[i]
			object := &unstructured.Unstructured{Object: manifest.Object}
			if !beside(report.Key{Group: object.GroupVersionKind().Group, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}) {
				manifest.Hide()
			}
		}
	}
	text, err := json.Marshal(plan)
	return preview.Answer{Plan: text, Hidden: hidden, Manifests: plan.manifests}, err
}

// hideValues removes the values of fields of objects that are not beside the answer, and
// returns how many objects have such fields: a user who may read the Secrets of a namespace may not read others.
func hideValues(changes []report.PlannedChange, beside func(report.Key) bool) (hidden int) {
	for i := range changes {
		change := &changes[i]
		if len(change.Fields) == 0 || beside(change.Key) {
			continue
		}
		hidden++
		for j, field := range change.Fields {
			change.Fields[j] = report.FieldChange(difference.Change(field).Mask())
		}
	}
	return hidden
}
