// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/planview"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
)

// revisionList is the answer with the history, the latest revision last.
type revisionList struct {
	Items []revision `json:"items"`
}

// revision is one of the history.
type revision struct {
	Revision  int64                   `json:"revision"`
	Result    v1alpha1.RevisionResult `json:"result"`
	At        metav1.Time             `json:"at"`
	ReadyAt   *metav1.Time            `json:"readyAt,omitempty"`
	ChangedBy string                  `json:"changedBy,omitempty"`
	Source    string                  `json:"source,omitempty"`
	Note      string                  `json:"note,omitempty"`
	Current   bool                    `json:"current"`
	// Kept: its manifests are kept, so that it can be compared and gone back to.
	Kept bool `json:"kept"`
}

func (s *Server) history(r *http.Request) (any, error) {
	_, c, err := s.component(r.Context(), addressIn(r))
	if err != nil {
		return nil, err
	}
	list := revisionList{Items: []revision{}}
	for _, known := range slices.Backward(c.Status.History) {
		list.Items = append(list.Items, revision{
			Revision: known.Revision, Result: known.Result, At: known.AppliedAt, ReadyAt: known.ReadyAt, ChangedBy: known.ChangedBy,
			Source: inspect.SourceText(known.Source), Note: c.RevisionNote(known), Current: known.Revision == c.Status.Revision, Kept: known.Digest != "",
		})
	}
	return list, nil
}

// difference is what differs between two revisions.
type difference struct {
	From    int64                  `json:"from"`
	To      int64                  `json:"to"`
	Text    string                 `json:"text"`
	Changes []report.PlannedChange `json:"changes"`
}

// diffRequest asks for what a rollback to a revision would change.
type diffRequest struct {
	Revision int64 `json:"revision"`
}

// diff asks the operator what a rollback to a revision would change: only it has the key of the history.
func (s *Server) diff(r *http.Request) (any, error) {
	var asked diffRequest
	if err := readJSON(r, &asked); err != nil {
		return nil, err
	}
	_, c, err := s.component(r.Context(), addressIn(r))
	if err != nil {
		return nil, err
	}
	out := difference{From: c.Status.Revision, To: asked.Revision, Changes: []report.PlannedChange{}}
	for _, number := range []int64{out.From, out.To} {
		if err := c.Kept(number); err != nil {
			return nil, refused{http.StatusConflict, err.Error()}
		}
	}
	answer, err := s.ask(r.Context(), c, preview.Question{From: out.From, To: out.To})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer.Changes, &out.Changes); err != nil {
		return nil, fmt.Errorf("the answer of the operator of %s cannot be read: %w", c, err)
	}
	out.Text = planview.Changes(out.Changes, c.Object.GetNamespace())
	return out, nil
}
