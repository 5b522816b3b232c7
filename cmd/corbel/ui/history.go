// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
)

// revisionList is the answer with the history, the latest revision last.
type revisionList struct {
	Items []revision `json:"items"`
}

// revision is one of the history.
type revision struct {
	v1alpha1.RevisionStatus
	SourceText string `json:"sourceText,omitempty"`
	Note       string `json:"note,omitempty"`
	Current    bool   `json:"current"`
}

func (s *Server) history(_ *http.Request, _ *inspect.Reader, c inspect.Component) (any, error) {
	list := revisionList{Items: []revision{}}
	for _, known := range slices.Backward(c.Status.History) {
		list.Items = append(list.Items, revision{known, inspect.SourceText(known.Source), c.RevisionNote(known), known.Revision == c.Status.Revision})
	}
	return list, nil
}

// difference is what differs between two revisions.
type difference struct {
	From    int64                  `json:"from"`
	To      int64                  `json:"to"`
	Changes []report.PlannedChange `json:"changes"`
}

// diff asks the operator what a rollback to a revision would change: only it has the key of the history.
func (s *Server) diff(r *http.Request, _ *inspect.Reader, c inspect.Component) (any, error) {
	var asked struct {
		Revision int64 `json:"revision"`
	}
	if err := readJSON(r, &asked); err != nil {
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
	return out, nil
}
