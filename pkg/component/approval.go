// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// A component may require the approval of each new revision. Until the hash of its plan stands in
// the annotation approve, the revision before is kept as it is. Rollbacks and deletions need no
// approval.

// approvalGiven is closed while the candidate is another revision that has to be approved. It renders the candidate once, and records
// the plan in the status.
func (p *applier) approvalGiven(ctx context.Context, a *attempt) (answer, error) {
	a.obj.GetStatus().Approval = nil
	if !p.needsApproval(a) {
		return answer{}, nil
	}
	pending, err := p.planNext(ctx, a)
	if err != nil {
		return answer{meanwhile: repair, why: err}, nil
	}
	if p.self.Value(a.obj, vocabulary.AnnotationApprove) == pending.Hash {
		return answer{}, nil
	}
	a.obj.GetStatus().Approval, a.approved = pending, nil
	return answer{meanwhile: keep, held: p.unapproved(a.obj)}, nil
}

// unapproved describes a revision that waits for its approval.
func (p *applier) unapproved(obj Component) verdict.Held {
	pending, annotation := obj.GetStatus().Approval, p.self.Annotation(vocabulary.AnnotationApprove)
	message := fmt.Sprintf("revision %d waits for its approval: %s; the annotation %s: %s approves it", pending.Revision, pending.Summary, annotation, pending.Hash)
	if other := obj.GetAnnotations()[annotation]; other != "" {
		message += fmt.Sprintf(", and %s, which it has, is the hash of another plan", sentence.Shorten(other, 64))
	}
	return verdict.Held{Reason: vocabulary.ReasonApprovalRequired, Message: message}
}

// needsApproval reports whether a revision would start that has to be approved.
func (p *applier) needsApproval(a *attempt) bool {
	annotation := p.self.Annotation(vocabulary.AnnotationRequireApproval)
	required, _ := flagOf(a.obj, annotation)
	if _, annotated := a.obj.GetAnnotations()[annotation]; !annotated {
		required = p.settings.requireApproval
	}
	status := a.obj.GetStatus()
	dropped := status.Revision == 0 && status.AppliedGeneration != 0 // an outdated definition dropped it
	return required && !a.candidate.Pin.IsSet() && !dropped && revision.Of(a.obj).Starts(a.candidate.Digests)
}

// planNext renders the candidate as the next revision, and returns its plan as the status has it.
func (p *applier) planNext(ctx context.Context, a *attempt) (*v1alpha1.PendingApproval, error) {
	next, err := identity.Copy(a.obj)
	if err != nil {
		return nil, err
	}
	status, digests := revision.Of(next), a.candidate.Digests
	status.StartProcessing(next.GetGeneration(), digests, p.now())
	ctx = revision.ContextWithRevision(ctx, a.target, digests.Component, status)
	left, err := p.code.previewHooks(revision.InPreview(ctx), preReconcile, next)
	if err != nil {
		return nil, err
	}
	request := p.revisions.Request(next, a.config.Deployment, digests.Revision, false)
	request.Pending = true
	rendered, err := p.revisions.Renderer.Render(ctx, request, &p.remembered(a.obj).rendering)
	if err != nil {
		return nil, err
	}
	a.approved = &rendered
	plan := Plan{Revision: status.Revision}
	known := renderCache{inputs: inputs{config: a.config, allowEmpty: a.allowEmpty}, appliedRevision: appliedRevision{digest: digests.Component}}
	if err := p.planner.planRendered(ctx, a.obj, a.target, known, rendered, digests, &plan); err != nil {
		return nil, err
	}
	summary := plan.summary()
	if len(left) > 0 {
		summary += "; it is not known what these hooks change, because they are not marked by PreviewSafe: " + strings.Join(left, ", ")
	}
	return &v1alpha1.PendingApproval{Revision: status.Revision, Hash: plan.Hash, Summary: summary}, nil
}

// summary counts the changes of a plan by class, and names objects that are refused or blocked.
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

// approvalIsForeign passes events about components with a status.approval that another client has written: the reconcile replaces
// it before tools of approvers trust it.
func approvalIsForeign(fieldOwner string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectNew != nil && slices.ContainsFunc(e.ObjectNew.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Subresource == "status" && entry.Manager != fieldOwner && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:approval"`))
		})
	}}
}
