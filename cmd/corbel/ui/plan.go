// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/steering"
	"github.com/corbel-run/corbel/internal/planview"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
)

// spec returns the spec of a component to edit for a plan.
func (s *Server) spec(_ *http.Request, _ *inspect.Reader, c inspect.Component) (any, error) {
	text, err := yaml.Marshal(c.Object.Object["spec"])
	if err != nil {
		return nil, err
	}
	return map[string]string{"yaml": string(text)}, nil
}

// planRequest asks for a plan: of the component as it is, with another spec, after the end of its rollback, or of its
// deletion.
type planRequest struct {
	Spec        *string `json:"spec"`
	EndRollback bool    `json:"endRollback"`
	Delete      bool    `json:"delete"`
}

// planAnswer is a plan.
type planAnswer struct {
	Text    string                 `json:"text"` // its title, and remarks
	Summary string                 `json:"summary"`
	Changes []report.PlannedChange `json:"changes"`
	Until   []report.PlannedWait   `json:"until"` // what the batches of changes wait for
}

// plan asks the operator of a component what it would do.
func (s *Server) plan(r *http.Request, _ *inspect.Reader, c inspect.Component) (any, error) {
	var asked planRequest
	if err := readJSON(r, &asked); err != nil {
		return nil, err
	}
	if asked.Delete && (asked.Spec != nil || asked.EndRollback) {
		return nil, bad("a plan is of a spec or of a deletion")
	}
	question := preview.Question{Delete: asked.Delete}
	var err error
	if asked.Spec != nil {
		var spec map[string]any
		if err := yaml.UnmarshalStrict([]byte(*asked.Spec), &spec); err != nil {
			return nil, bad("the spec is no YAML: %v", err)
		}
		question.Edited = c.Object.DeepCopy()
		question.Edited.Object["spec"] = spec
	}
	if asked.EndRollback {
		if question.Edited, err = steering.WithoutRollback(c, question.Edited); err != nil {
			return nil, refused{http.StatusConflict, err.Error()}
		}
	}
	if question.Edited != nil {
		question.Edited.SetResourceVersion("") // the question itself changes it
	}
	answer, err := s.ask(r.Context(), c, question)
	if err != nil {
		return nil, err
	}
	view := planview.View{Operator: c.Reconciler, Current: c.Status.Revision, Delete: asked.Delete, Hidden: answer.Hidden}
	if err := json.Unmarshal(answer.Plan, &view.Plan); err != nil {
		return nil, fmt.Errorf("the answer of the operator of %s cannot be read: %w", c, err)
	}
	if view.Plan.RollbackTo != 0 && !asked.Delete {
		view.Note = "Changes of the spec are not applied before the rollback is ended."
	}
	out := planAnswer{Summary: planview.Summary(view.Plan.Changes), Changes: view.Plan.Changes, Until: view.Plan.Until}
	view.Plan.Changes = nil // the page draws them
	out.Text = strings.TrimSpace(strings.Replace(view.Text(), planview.Summary(nil)+"\n", "", 1))
	return out, nil
}

// ask asks the operator of a component. What it says about a mistake is a conflict with what was asked.
func (s *Server) ask(ctx context.Context, c inspect.Component, q preview.Question) (preview.Answer, error) {
	q.Component, q.FieldOwner = c.Object, steering.FieldManager
	answer, err := preview.Ask(ctx, s.cluster.Client, q)
	if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && !isDown(err) && ctx.Err() == nil {
		err = refused{http.StatusConflict, strings.TrimSpace(err.Error())}
	}
	return answer, err
}
