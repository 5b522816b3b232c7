// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/record"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// delete removes the dependent objects, unless something blocks that.
func (d *deleter) delete(ctx context.Context, obj Component, commit session.Commit) (result.Result, error) {
	d.memory.takeRendered(client.ObjectKeyFromObject(obj))
	if err := d.detachOrphans(ctx, obj, commit); err != nil {
		return result.Empty, err
	}
	_, abandonErr := flagOf(obj, d.self.Annotation(vocabulary.AnnotationAbandon))
	managedTypes, typesErr := managedTypesOf(obj)
	if err := errors.Join(abandonErr, typesErr); err != nil && !isEmpty(obj) {
		return result.Empty, &verdict.InvalidError{Err: d.self.About(obj, err)}
	}
	absent := d.loadReferences(ctx, obj)
	if err := errors.Join(absent.Failed...); err != nil && !isEmpty(obj) {
		return result.Empty, d.blockedBy(obj, d.self.About(obj, err))
	}
	t, err := d.prepareDelete(ctx, obj, errors.Join(absent.Missing...))
	if err != nil {
		return result.Empty, err
	}
	defer t.Release()
	ctx = d.basicContext(ctx)
	if err := d.runHooks(ctx, postRead, obj); err != nil {
		return result.Empty, err
	}
	digests, err := d.revisions.Digests(ctx, obj)
	if err != nil && !isEmpty(obj) {
		return result.Empty, err
	}
	ctx = revision.ContextWithRevision(ctx, t, digests.Component, revision.Of(obj))
	if t.Engine != nil {
		empty := isEmpty(obj)
		err = d.deleteDependents(ctx, obj, t, commit, managedTypes, digests)
		if _, refused := errors.AsType[*reconciler.UnidentifiedTargetError](err); refused {
			if !empty {
				return result.Empty, d.blockedBy(obj, d.aboutTarget(obj, err))
			}
			err = nil // nothing was ever written there
		}
		switch {
		case isPending(err):
			err = &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: sentence.OneLine(err.Error()), Fallback: d.concluder.MemoryOf(obj).Delay()}}
		case !empty && verdict.IsForbidden(err):
			released, failed := d.releaseTerminating(ctx, obj, t, commit)
			if !released && (failed == nil || verdict.IsForbidden(failed)) {
				failed = d.forbiddenDeletion(ctx, obj, err)
			}
			err = failed
		}
	} else {
		err = d.startDeletion(ctx, obj)
	}
	if err != nil {
		return result.Empty, err
	}
	if err := d.runHooks(ctx, postDelete, obj); err != nil {
		return result.Empty, err
	}
	d.telemetry.LogDeleted(ctx, obj, &d.concluder.MemoryOf(obj).Activity)
	return result.Success, nil
}

// isPending reports whether nothing is wrong but that types are just coming or going, as the component's own do when their
// definition is deleted.
func isPending(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !isPending(err) })
	}
	if inner := errors.Unwrap(err); inner != nil {
		return isPending(inner)
	}
	_, pending := errors.AsType[*cluster.PendingTypesError](err)
	return pending
}

// forbiddenDeletion adds the way out to an error about missing rights. A component that
// lacked rights before its deletion makes no transition, so it gets an event.
func (d *deleter) forbiddenDeletion(ctx context.Context, obj Component, err error) error {
	hint := d.abandonHint(obj)
	message := sentence.Shorten(sentence.OneLine(err.Error()), conditions.MaxMessage-len(hint)) + hint
	if _, reason, before := obj.GetStatus().GetState(); reason == vocabulary.ReasonForbidden && !strings.Contains(before, hint) {
		d.telemetry.Warn(obj, reason, telemetry.Delete, message)
	}
	return verdict.MessageError{Err: err, Message: message}
}

// prepareDelete returns the target; it has no engine if there never was one that
// anything was written to. So a component that names a target that does not work
// can go if nothing is left of it, and otherwise waits. The error says what is
// missing to find out about the target.
func (d *deleter) prepareDelete(ctx context.Context, obj Component, missing error) (t targets.Connection, err error) {
	err = missing
	var access target.Access
	if err == nil {
		access, err = accessOf(obj, d.settings)
	}
	if err != nil {
		err = d.self.About(obj, err)
	} else {
		t, err = d.connect(ctx, obj, access)
	}
	_, later := errors.AsType[*result.RequeueError](err)
	switch {
	case err == nil || isEmpty(obj):
		return t, nil
	case later:
		return t, err
	}
	return t, d.blockedBy(obj, err)
}

// deleteDependents returns nil when nothing is left.
func (d *deleter) deleteDependents(ctx context.Context, obj Component, t targets.Connection, commit session.Commit, managedTypes []reconciler.TypeInfo, digests revision.Digests) error {
	stored, err := d.openInventory(ctx, obj, commit, t, false)
	if err != nil {
		return err
	}
	request, err := d.deleteRequest(obj, stored.Inventory(), managedTypes)
	if err != nil {
		return err
	}
	request.Record, request.SoleWriter, request.Confirm = stored.Save, d.remembered(obj).soleWriter, d.confirm(obj)
	var blockers []report.Blocker
	if !isEmpty(obj) { // otherwise nothing is deleted that instances could need
		if blockers, err = t.Engine.DeletionBlockers(ctx, request); err != nil {
			return err
		}
	}
	if len(blockers) > 0 {
		var awaited []report.AwaitedObject
		for _, blocker := range blockers {
			awaited = append(awaited, blocker.Awaited...)
		}
		d.watches.SetAwaited(client.ObjectKeyFromObject(obj), t.Target, awaited)
		return d.blocked(obj, verdict.BlockersMessage(blockers))
	}
	if err := d.startDeletion(ctx, obj); err != nil {
		return err
	}
	conclude.NoteDrift(obj, nil) // an object that goes need not be as its manifest says
	if err := d.addDeleteHooks(ctx, d.revisions, obj, &request, digests, &d.remembered(obj).rendering); err != nil {
		return err
	}
	outcome, err := t.Engine.Delete(ctx, request)
	err = stored.SaveOutcome(ctx, outcome.Inventory, err)
	if err := d.concluder.Delete(ctx, obj, t, outcome, err); err != nil {
		return err
	}
	return stored.SaveEmpty(ctx)
}

// deleteRequest returns the request to delete the dependent objects, without what only the execution needs.
func (o *opener) deleteRequest(obj Component, inventory v1alpha1.Inventory, managedTypes []reconciler.TypeInfo) (reconciler.DeleteRequest, error) {
	protected, err := o.protected(obj)
	return reconciler.DeleteRequest{
		Owner: o.self.Owner(obj), Inventory: inventory, ManagedTypes: managedTypes, Timeout: intervalsOf(obj).Timeout, Protected: protected,
		Policies: reconciler.Policies{AdoptOperator: o.self.FormerName(obj)},
	}, err
}

// openInventory opens the inventory of a component that is deleted. A lost part of it that cannot be rebuilt blocks the deletion.
func (d *deleter) openInventory(ctx context.Context, obj Component, commit session.Commit, t targets.Connection, fastPath bool) (*record.Record, error) {
	stored, err := d.records.Open(ctx, obj, commit, t.Engine, policiesOf(obj, d.settings.policies).Delete, fastPath)
	if _, lost := errors.AsType[*record.LostError](err); lost && !verdict.IsForbidden(err) {
		blocked := d.blockedBy(obj, d.self.About(obj, err))
		blocked.Cause = err
		err = blocked
	}
	return stored, err
}

// startDeletion runs right before the first deletion: a hook must not undo what the
// component still needs while something blocks its deletion.
func (d *deleter) startDeletion(ctx context.Context, obj Component) error {
	if foreign := d.self.ForeignFinalizers(obj); foreign != "" { // their clients still need the dependents
		return d.blocked(obj, d.self.Title(obj)+": "+foreign)
	}
	return d.runHooks(ctx, preDelete, obj)
}

func (d *deleter) blocked(obj Component, message string) *verdict.UnfinishedError {
	return &verdict.UnfinishedError{Facts: verdict.Facts{Blocked: message, Fallback: d.concluder.MemoryOf(obj).Delay()}}
}

// blockedBy is for a deletion that cannot reach its target. Its message has the way out.
func (d *deleter) blockedBy(obj Component, err error) *verdict.UnfinishedError {
	return d.blocked(obj, err.Error()+d.abandonHint(obj))
}

// addDeleteHooks renders the objects that run before and after the deletion. That is done
// only if the record says that there is any, and the component does not skip it.
func (d *deleter) addDeleteHooks(ctx context.Context, revisions *revision.Source, obj Component, request *reconciler.DeleteRequest, digests revision.Digests, last *rendering.Last) error {
	if !request.Inventory.DeleteHooks {
		return nil
	}
	annotation := d.self.Annotation(vocabulary.AnnotationSkipDeleteHooks)
	skip, err := flagOf(obj, annotation)
	if err != nil {
		return &verdict.InvalidError{Err: d.self.About(obj, err)}
	}
	if request.SkipHooks = skip; skip {
		return nil
	}
	resolved, err := resolveConfig(obj, d.settings)
	if err != nil {
		return &verdict.InvalidError{Err: d.self.About(obj, err)}
	}
	var pinned revision.Pin
	if current := revision.Of(obj).Current(); current != nil {
		pinned.To = current.RollbackTo
	}
	toRender := revisions.Request(obj, resolved.Deployment, digests.Revision, false)
	manifests, err := revisions.Objects(ctx, obj, toRender, pinned, last)
	if _, missing := errors.AsType[*rendering.MissingRevisionError](err); missing {
		// The Secret of the revisions may go before the component does.
		manifests, err = revisions.Objects(ctx, obj, toRender, revision.Pin{}, last)
	}
	if err != nil {
		delay := d.concluder.MemoryOf(obj).Delay()
		return types.NewRetriableError(fmt.Errorf(
			`render what runs before and after the deletion: %w; to delete without that, set the annotation %s: "true"`, err, annotation), &delay)
	}
	request.Objects, request.Namespace, request.Policies = manifests.Objects, manifests.Namespace, resolved.policies
	request.ComponentDigest = digests.Component
	return nil
}

// finalize orphans the dependents that are kept, and removes the Secrets of the inventory and of the revisions: the
// garbage collector may have taken their ownerReferences off. A refusal does not hold up the deletion.
func (d *deleter) finalize(ctx context.Context, obj Component, policy v1alpha1.ManagementPolicy, commit session.Commit) error {
	if d.isAbandoned(obj) {
		d.reportAbandoned(ctx, obj)
	} else if err := d.orphanDependents(ctx, obj, policy, commit); err != nil {
		return err
	}
	errs := []error{d.records.Erase(ctx, obj), d.records.EraseFormer(ctx, obj), d.outputs.Erase(ctx, obj)}
	if obj.GetStatus().Revision != 0 || obj.GetStatus().Inventory.Chunks != nil { // the number may be lost
		errs = append(errs, d.revisions.Renderer.Revisions.Erase(ctx, d.self.Revisions(obj), d.remembered(obj).rendering.Record()))
	}
	if policy != v1alpha1.ManagementPolicyDetachOnDelete && !d.isAbandoned(obj) {
		errs = append(errs, d.revisions.EraseRelease(ctx, obj, d.local))
	}
	failed := slices.DeleteFunc(slices.Clone(errs), rendering.IsRefusal) // one by one: a refusal must not hide another failure
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		d.telemetry.Warn(obj, reasonSecretsLeft, telemetry.Delete, fmt.Sprintf(
			"Secrets that hold the inventory, the revisions, the outputs or a Helm release stay (%v); remove their finalizer %s/inventory, if they have it, and delete them", err, d.self.Name))
	}
	return nil
}

// reasonSecretsLeft means that the server refused to remove Secrets of a deleted component: the inventory, the
// revisions, the outputs or the Helm release.
//
// Event type: Warning
// What to do: remove the finalizer that the note names from these Secrets, and delete them.
const reasonSecretsLeft = "SecretsLeft"

// reasonAbandoned means that the component is deleted with the annotation abandon, and its dependents are
// orphaned.
//
// Event type: Warning
// What to do: delete the objects that the note names by hand, if they are not needed.
const reasonAbandoned = "Abandoned"

// reportAbandoned sends an event about objects that are orphaned without being touched. It is for
// deletions that cannot succeed, so nothing here can fail, and no hooks run.
func (d *deleter) reportAbandoned(ctx context.Context, obj Component) {
	inventory := obj.GetStatus().Inventory
	items, unread := inventory.Items, 0
	if known, err := d.records.Items(ctx, obj); err == nil {
		items = known
	} else {
		unread = inventory.Count() - len(items)
	}
	left, note := left(items), "orphaned objects that are not known, because the inventory is lost"
	if !inventory.IsLost() {
		note = "orphaned " + verdict.Count(len(left)+unread, "object")
	}
	if len(left)+unread == 0 && !inventory.IsLost() {
		return
	}
	if inventory.Target != "" {
		note += fmt.Sprintf(" in the cluster %s", inventory.Target)
	}
	if names := namesOf(left, unread); names != "" {
		note += ": " + names
	}
	d.telemetry.Warn(obj, reasonAbandoned, telemetry.Delete, note)
}

// abandonHint is the way out of a deletion that cannot reach its target.
func (d *deleter) abandonHint(obj Component) string {
	what := "objects"
	if inventory := obj.GetStatus().Inventory; !inventory.IsLost() {
		what = verdict.Count(inventory.Count(), "object")
	}
	return fmt.Sprintf(`; to give up the %s that may be left there, set the annotation %s to "true"`, what, d.self.Annotation(vocabulary.AnnotationAbandon))
}

// orphanDependents removes our labels and annotations from everything that a component orphans
// by its management policy, so that it does not look owned by a component that is gone.
// Dependents of a component under the policy skip are not touched.
func (d *deleter) orphanDependents(ctx context.Context, obj Component, policy v1alpha1.ManagementPolicy, commit session.Commit) error {
	if policy != v1alpha1.ManagementPolicyDetachOnDelete || isEmpty(obj) {
		return nil
	}
	absent := d.loadReferences(ctx, obj)
	t, err := d.prepareDelete(ctx, obj, errors.Join(slices.Concat(absent.Failed, absent.Missing)...))
	if err != nil {
		return err
	}
	defer t.Release()
	// Lost parts of the record are looked for, but nothing more is recorded, unless the whole record is lost.
	if !obj.GetStatus().Inventory.IsLost() {
		commit = func(context.Context) error { return nil }
	}
	stored, err := d.openInventory(ctx, obj, commit, t, false)
	if err != nil {
		return err
	}
	inventory := stored.Inventory()
	inventory.Items = slices.Clone(inventory.Items)
	for i := range inventory.Items {
		inventory.Items[i].DeletePolicy = v1alpha1.DeletePolicyOrphan
	}
	outcome, err := t.Engine.Delete(ctx, reconciler.DeleteRequest{
		Owner: d.self.Owner(obj), Inventory: inventory, SkipHooks: true, Policies: reconciler.Policies{AdoptOperator: d.self.FormerName(obj)},
		Record: func(context.Context, v1alpha1.Inventory) error { return nil },
	})
	switch {
	case err != nil:
		return err
	case !outcome.Done():
		return d.concluder.Waiting(obj, outcome.Waiting, nil)
	}
	return nil
}

func (o *opener) isAbandoned(obj Component) bool {
	abandoned, err := flagOf(obj, o.self.Annotation(vocabulary.AnnotationAbandon))
	return err == nil && abandoned
}

// detachOrphans gives a component that is deleted with the propagation policy Orphan the management policy
// detach-on-delete, which makes the wish durable. The component is reconciled again under that policy.
func (d *deleter) detachOrphans(ctx context.Context, obj Component, commit session.Commit) error {
	orphan, seen := d.cascades.of(obj)
	if orphan = orphan || hasOrphanFinalizer(obj); !orphan && !seen && obj.GetStatus().Revision != 0 {
		var err error
		if orphan, err = d.revisions.Renderer.Revisions.IsOrphaned(ctx, d.self.Revisions(obj)); err != nil && !rendering.IsRefusal(err) {
			return fmt.Errorf("find out whether the deletion orphans the dependent objects: %w", err)
		}
		d.cascades.note(obj, orphan)
	}
	if !orphan {
		return nil
	}
	detach := map[string]string{d.self.Annotation(v1alpha1.AnnotationManagementPolicy): "detach-on-delete"}
	obj.SetAnnotations(labels.Merge(obj.GetAnnotations(), detach))
	if err := commit(ctx); err != nil {
		return err
	}
	return &result.RequeueError{After: time.Millisecond, Err: errors.New("the deletion orphans the dependent objects")}
}

// A namespace that is deleted takes the service account and the RoleBindings of a tenant with it, and the components
// in it hold it until their dependents are gone. Without the account, no request about the dependents succeeds. But
// the server deletes the objects of a namespace that is being deleted, so no client has to prove that they are gone.

// reasonIdentityGone means that the namespace of a component is being deleted and its service account is gone, so
// dependents in other places stay. The event is about the namespace.
//
// Event type: Warning
// What to do: delete the objects that the note names by hand, if they are not needed.
const reasonIdentityGone = "IdentityGone"

// releaseTerminating empties the inventory of a component in a deletion that is forbidden, if all objects in it live in
// namespaces of the local cluster that are being deleted, or if the identity will not come back. Otherwise it reports
// false.
func (d *deleter) releaseTerminating(ctx context.Context, obj Component, t targets.Connection, commit session.Commit) (bool, error) {
	access, err := accessOf(obj, d.settings)
	if err != nil || access.Kubeconfig != nil {
		return false, nil
	}
	stored, err := d.openInventory(ctx, obj, commit, t, true)
	if err != nil {
		return false, err
	}
	terminating := map[string]*metav1.PartialObjectMetadata{"": nil}
	read := func(namespace string) *metav1.PartialObjectMetadata {
		if _, known := terminating[namespace]; !known {
			terminating[namespace] = d.terminating(ctx, namespace)
		}
		return terminating[namespace]
	}
	var elsewhere []v1alpha1.InventoryItem
	for _, item := range left(stored.Inventory().Items) {
		if read(item.Namespace) == nil {
			elsewhere = append(elsewhere, item)
		}
	}
	if len(elsewhere) > 0 {
		own, missing := read(obj.GetNamespace()), ""
		if own != nil {
			missing = targets.MissingServiceAccount(ctx, d.local, access)
		}
		if missing == "" {
			return false, nil
		}
		note := fmt.Sprintf("%s: orphaned %s: %s; %s, and its namespace is being deleted", d.self.Title(obj),
			verdict.Count(len(elsewhere), "object"), namesOf(elsewhere, 0), missing)
		logf.FromContext(ctx).Info(note)
		d.telemetry.Warn(own, reasonIdentityGone, telemetry.Delete, note) // no event can be made in the namespace itself
	}
	if err := stored.SaveOutcome(ctx, v1alpha1.Inventory{}, nil); err != nil {
		return false, err
	}
	return true, stored.SaveEmpty(ctx)
}

// terminating returns a namespace of the local cluster that is being deleted, or is gone; else nil.
func (d *deleter) terminating(ctx context.Context, name string) *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := d.local.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if namespace.Name = name; types.IsGone(err, name) || err == nil && !namespace.DeletionTimestamp.IsZero() {
		return namespace
	}
	return nil
}

// left returns the items of objects that may exist and are the component's.
func left(items []v1alpha1.InventoryItem) (left []v1alpha1.InventoryItem) {
	for _, item := range items {
		shared := item.Origin == vocabulary.OriginNamespace && item.UID == "" && item.Digest == "" // with other components
		if item.Phase != vocabulary.PhaseCompleted && item.Phase != vocabulary.PhaseReleased && !shared {
			left = append(left, item)
		}
	}
	return left
}

// namesOf names the first items, and counts the rest and the unread ones.
func namesOf(items []v1alpha1.InventoryItem, unread int) string {
	var names []string
	for _, item := range items[:min(len(items), verdict.MaxNamed)] {
		kind := schema.GroupKind{Group: item.Group, Kind: item.Kind}
		names = append(names, report.Key{Kind: kind.String(), Namespace: item.Namespace, Name: item.Name}.String())
	}
	text := strings.Join(names, ", ")
	if more := len(items) + unread - len(names); more > 0 && len(names) > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
