// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/lease"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Question is a question of a user.
type Question struct {
	// Component is the component as it was read from the server.
	Component *unstructured.Unstructured
	// Edited is the component with changes; nil asks about the component as it is stored.
	Edited *unstructured.Unstructured
	// Delete asks about the deletion of the component.
	Delete bool
	// Manifests asks for the manifests of the component as it is stored, beside its plan.
	Manifests bool
	// From and To, if they are not 0, ask for the differences between two revisions.
	From, To int64
	// FieldOwner is the field manager of the annotation.
	FieldOwner string
}

// Ask asks the operator of a component, and waits for its answer: a minute, unless the context ends
// before. The client reads from the server. Its user needs the rights to patch the component, to
// get Secrets beside it, and for an edited component to create them. A mistake that the operator
// reports is an error, too.
func Ask(ctx context.Context, c client.Client, q Question) (Answer, error) {
	a, err := newAsking(c, q)
	if err != nil {
		return Answer{}, err
	}
	if err := a.send(ctx, q); err != nil {
		return Answer{}, err
	}
	answer, err := a.await(ctx)
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	return answer, err
}

const (
	// patience is how long a user waits for an answer.
	//
	// Limit: the time for which the command corbel waits for a preview.
	patience = time.Minute
	// leaseAfter is when it is looked whether an operator runs at all.
	leaseAfter = 3 * time.Second
)

// asking is a question under way.
type asking struct {
	client    client.Client
	component *unstructured.Unstructured
	request   Request
	owner     Owner
	title     string
	lease     string // namespace/name of the operator's lease; empty if it is not known
	started   time.Time
	created   types.UID // of the Secret with the edited component
}

func newAsking(c client.Client, q Question) (*asking, error) {
	object := q.Component
	status := func(path ...string) string {
		text, _, _ := unstructured.NestedString(object.Object, append([]string{"status"}, path...)...)
		return text
	}
	a := &asking{
		client: c, component: object, started: time.Now(), lease: status("inventory", "operator", "lease"),
		title: report.Key{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}.String(),
	}
	switch _, found, _ := unstructured.NestedMap(object.Object, "status"); {
	case status("reconciler") != "":
	case !found:
		return nil, fmt.Errorf("no operator has reconciled %s yet, so none can be asked: start the operator, or use the command plan of its own program", a.title)
	default:
		return nil, fmt.Errorf("the operator that reconciled %s last is of a version that answers no questions: "+
			"if it was upgraded since, reconcile the component once, with its annotation reconcile-at; or use the command plan of the operator's own program", a.title)
	}
	a.owner = Owner{
		Reconciler: status("reconciler"), APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID(),
		Namespace: object.GetNamespace(),
	}
	if a.owner.Namespace == "" {
		if a.owner.Namespace = status("inventory", "operator", "namespace"); a.owner.Namespace == "" {
			return nil, fmt.Errorf("%s has no namespace, and its status does not say which one its operator has, so there is no place for an answer", a.title)
		}
	}
	action := ActionPlan
	switch {
	case q.From != 0 || q.To != 0:
		action = ActionDiff
	case q.Delete:
		action = ActionDelete
	case q.Manifests:
		action = ActionManifests
	case q.Edited != nil:
		action = ActionEdited
	}
	a.request = NewRequest(action, a.started)
	a.request.From, a.request.To = q.From, q.To
	return a, nil
}

// send writes the request.
func (a *asking) send(ctx context.Context, q Question) error {
	if a.request.Action == ActionEdited {
		secret := a.owner.Secret(a.request)
		edited := q.Edited.DeepCopy()
		edited.SetManagedFields(nil)
		unstructured.RemoveNestedField(edited.Object, "status")
		if err := SetEdited(secret, edited.Object); err != nil {
			return err
		}
		if err := a.client.Create(ctx, secret, client.FieldOwner(q.FieldOwner)); err != nil {
			return hint(fmt.Errorf("an edited component is handed to the operator in a Secret, which cannot be created: %w", err),
				"it takes the right to create secrets in the namespace "+a.owner.Namespace+"; or use the command plan of the operator's own program")
		}
		a.created = secret.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": a.owner.UID, "annotations": map[string]string{a.owner.Reconciler + "/" + vocabulary.AnnotationPreview: a.request.String()},
	}})
	if err != nil {
		return err
	}
	if err := a.client.Patch(ctx, a.component.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(q.FieldOwner)); err != nil {
		a.withdraw(ctx)
		return hint(fmt.Errorf("the operator is asked by the annotation %s/%s of %s, which cannot be set: %w", a.owner.Reconciler, vocabulary.AnnotationPreview, a.title, err),
			"it takes the right to patch the component; or use the command plan of the operator's own program")
	}
	return nil
}

// hint adds the needed rights to an error about rights.
func hint(err error, text string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; %s", err, text)
	}
	return err
}

// withdraw removes a Secret that the operator has not answered. If it cannot be removed, it goes
// with the component.
func (a *asking) withdraw(ctx context.Context) {
	if a.created != "" {
		_ = a.client.Delete(context.WithoutCancel(ctx), a.owner.Secret(a.request), client.Preconditions{UID: &a.created})
	}
}

// await reads the Secret until there is an answer.
func (a *asking) await(ctx context.Context) (answer Answer, err error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	looked, seen := false, a.created != ""
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.3, Steps: 20, Cap: time.Second}
	err = backoff.DelayFunc().Until(waiting, true, true, func(ctx context.Context) (bool, error) {
		secret := &corev1.Secret{}
		err := a.client.Get(ctx, client.ObjectKey{Namespace: a.owner.Namespace, Name: a.request.SecretName()}, secret)
		switch {
		case err == nil && IsAnswered(secret):
			answer, err = AnswerIn(secret)
			return true, err
		case err == nil:
			seen = true
		case apierrors.IsNotFound(err) && seen:
			return false, fmt.Errorf("the request about %s expired before it was answered: ask again", a.title)
		case apierrors.IsForbidden(err):
			return false, hint(fmt.Errorf("the operator answers in Secret %s/%s, which cannot be read: %w", a.owner.Namespace, a.request.SecretName(), err),
				"it takes the right to get secrets in the namespace; or use the command plan of the operator's own program")
		case !apierrors.IsNotFound(err) && ctx.Err() == nil:
			return false, err
		}
		if !looked && time.Since(a.started) > leaseAfter {
			looked = true
			if a.isEnding(ctx) {
				return false, fmt.Errorf("the namespace %s is being deleted, so no operator can answer in it", a.owner.Namespace)
			}
			if stopped := a.stopped(ctx); stopped != "" {
				return false, fmt.Errorf("no operator named %s is running: %s; start it, or use the command plan of its own program", a.owner.Reconciler, stopped)
			}
		}
		return false, nil
	})
	if waiting.Err() != nil && answer.Version == "" {
		err = a.unanswered(ctx)
	}
	if err != nil {
		a.withdraw(ctx)
	}
	return answer, err
}

// isEnding reports whether nothing can be created any more in the namespace of the answer.
func (a *asking) isEnding(ctx context.Context) bool {
	namespace := &corev1.Namespace{}
	return a.client.Get(ctx, client.ObjectKey{Name: a.owner.Namespace}, namespace) == nil && namespace.DeletionTimestamp != nil
}

// stopped returns a sentence if no operator holds its lease; it is empty if one does, or if that is
// not known.
func (a *asking) stopped(ctx context.Context) string {
	namespace, name, ok := strings.Cut(a.lease, "/")
	if !ok {
		return ""
	}
	live := &coordinationv1.Lease{}
	err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, live)
	switch holding := lease.Of(live, time.Now()); {
	case apierrors.IsNotFound(err):
		return "there is no Lease " + a.lease
	case err != nil:
		return ""
	case holding.Holder == "", holding.Renewed.IsZero():
		return "Lease " + a.lease + " is not held"
	case !holding.Held:
		return "Lease " + a.lease + " was not renewed since " + holding.Renewed.UTC().Format(time.RFC3339)
	}
	return ""
}

// unanswered names possible causes.
func (a *asking) unanswered(ctx context.Context) error {
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("no answer within %s from an operator named %s about %s: either none is running, or it is busy with other requests, "+
		"or it has the option DisablePreviews; its log says more. The command plan of the operator's own program does without", time.Since(a.started).Round(time.Second), a.owner.Reconciler, a.title)
}
