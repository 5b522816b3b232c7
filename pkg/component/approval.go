// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// A component may require the approval of each new revision. Until the hash of its plan stands in
// the annotation approve, the revision before is kept as it is. Rollbacks and deletions need no
// approval.

// needsApproval reports whether a revision would start that has to be approved.
func (h *handler) needsApproval(obj Component, next revision.Digests, pinned revision.Pin) (bool, error) {
	annotation := h.self.Annotation(vocabulary.AnnotationRequireApproval)
	required, err := flagOf(obj, annotation)
	if err != nil {
		return false, err
	}
	if _, annotated := obj.GetAnnotations()[annotation]; !annotated {
		required = h.settings.requireApproval
	}
	status := obj.GetStatus()
	dropped := status.Revision == 0 && status.AppliedGeneration != 0 // an outdated definition dropped it
	if !required || pinned.IsSet() || dropped {
		return false, nil
	}
	return h.revisions.Starts(obj, next), nil
}

// approvedRendering returns what is applied for a new revision if its plan is approved. Otherwise it
// records the plan in the status, and returns nil.
func (h *handler) approvedRendering(ctx context.Context, obj Component, t targets.Connection, resolved resolvedConfig, digests revision.Digests, allowEmpty bool) (*rendering.Rendering, error) {
	next, err := identity.Copy(obj)
	if err != nil {
		return nil, err
	}
	status := revision.Of(next)
	status.StartProcessing(next.GetGeneration(), digests, h.now())
	ctx = revision.InRevision(ctx, t, digests.Component, status)
	left, err := h.code.previewHooks(revision.InPreview(ctx), preReconcile, next)
	if err != nil {
		return nil, err
	}
	request := h.revisions.Request(next, resolved.Deployment, digests.Revision, false)
	request.Pending = true
	rendered, err := h.revisions.Renderer.Render(ctx, request, &h.remembered(obj).rendering)
	if err != nil {
		return nil, err
	}
	plan := Plan{Revision: status.Revision}
	known := prepared{config: resolved, digest: digests.Component, allowEmpty: allowEmpty}
	if err := h.planRendered(ctx, obj, t, known, rendered, digests, &plan); err != nil {
		return nil, err
	}
	if h.self.Value(obj, vocabulary.AnnotationApprove) == plan.Hash {
		return &rendered, nil
	}
	summary := plan.summary()
	if len(left) > 0 {
		summary += "; it is not known what these hooks change, because they are not marked by PreviewSafe: " + strings.Join(left, ", ")
	}
	obj.GetStatus().Approval = &v1alpha1.PendingApproval{Revision: status.Revision, Hash: plan.Hash, Summary: summary}
	return nil, nil
}

// summary counts the changes of a plan by class, and names what is refused or blocked.
func (p Plan) summary() string {
	var parts, problems []string
	for _, class := range []struct {
		class report.ChangeClass
		text  string
	}{
		{report.ChangeCreate, "%d created"}, {report.ChangeUpdate, "%d updated"}, {report.ChangeRestartsPods, "%d updated with a restart of pods"},
		{report.ChangeRecreate, "%d recreated"}, {report.ChangeAdopt, "%d adopted"}, {report.ChangeDelete, "%d deleted"}, {report.ChangeOrphan, "%d orphaned"},
	} {
		if total := p.Total(class.class); total > 0 {
			parts = append(parts, fmt.Sprintf(class.text, total))
		}
	}
	for _, change := range p.Changes {
		if change.Class == report.ChangeRefused || change.Class == report.ChangeBlocked {
			problems = append(problems, fmt.Sprintf("%s %s: %s", change.Key, strings.ToLower(string(change.Class)), sentence.OneLine(change.Message)))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing changes"}
	}
	text := strings.Join(parts, ", ")
	if len(problems) > 0 {
		text += "; " + verdict.FirstSentences(problems, 0, func(problem string) string { return problem })
	}
	return text
}

// applyUnapproved keeps the current revision as it is while the next one waits for its approval.
func (h *handler) applyUnapproved(ctx context.Context, obj Component, commit session.Commit, t targets.Connection, known prepared, before *reconciler.DesiredSet) (result.Result, error) {
	status := revision.Of(obj)
	if status.Revision == 0 {
		return h.concludeUnapproved(obj, t, reconciler.Outcome{}, nil)
	}
	known.digest, known.approval = status.Processing().Component, status.Approval.DeepCopy()
	stored, pin, err := h.revisions.Stored(ctx, obj, known.config.Deployment, status.Current())
	if _, missing := errors.AsType[*rendering.MissingRevisionError](err); missing {
		status.Approval.Summary += "; until then the dependent objects are not repaired: " + err.Error()
		return h.concludeUnapproved(obj, t, reconciler.Outcome{}, nil)
	}
	if err != nil {
		return result.Empty, err
	}
	known.pin, known.pinned, known.config.Namespace = pin, stored.Pinned, stored.Namespace
	outcome, err := h.applySet(ctx, obj, commit, t, known, before, stored.Objects)
	return h.concludeUnapproved(obj, t, outcome, err)
}

// concludeUnapproved ends a reconcile of a component with a revision that waits for its approval.
func (h *handler) concludeUnapproved(obj Component, t targets.Connection, outcome reconciler.Outcome, err error) (result.Result, error) {
	h.noteOutcome(obj, t, &outcome, err)
	if err != nil {
		return result.Empty, err
	}
	pending := obj.GetStatus().Approval
	annotation := h.self.Annotation(vocabulary.AnnotationApprove)
	message := fmt.Sprintf("revision %d waits for its approval: %s; the annotation %s: %s approves it", pending.Revision, pending.Summary, annotation, pending.Hash)
	if other := obj.GetAnnotations()[annotation]; other != "" {
		message += fmt.Sprintf(", and %s, which it has, is the hash of another plan", sentence.Shorten(other, 64))
	}
	return result.Empty, &verdict.UnfinishedError{Facts: verdict.Facts{Unapproved: message}}
}

// approvalIsForeign passes events about components with a status.approval that another client has written: the reconcile replaces
// it before tools of approvers trust it.
func approvalIsForeign(fieldOwner string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectNew != nil && slices.ContainsFunc(e.ObjectNew.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Subresource == "status" && entry.Manager != fieldOwner && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:approval"`))
		})
	}}
}

// preparedOf is what a full reconcile knows about a component before it renders.
func (h *handler) preparedOf(obj Component, resolved resolvedConfig, access target.Access, root root, allowEmpty bool) prepared {
	resolved.Adopted = nil // it is large, and needed for the rendering only
	return prepared{config: resolved, access: access, allowEmpty: allowEmpty, root: root, until: h.now().Add(intervalsOf(obj).Requeue)}
}
