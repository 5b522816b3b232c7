// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/steering"
)

// actionRequest asks for an action. Confirm repeats the component as "shop/corner", for a rollback and its end.
type actionRequest struct {
	Action   string    `json:"action"` // reconcile, suspend, resume, rollback or end-rollback
	Revision int64     `json:"revision"`
	Confirm  string    `json:"confirm"`
	UID      types.UID `json:"uid"` // if it is set, the component that the page shows
}

// action steers a component by an annotation.
func (s *Server) action(r *http.Request) (any, error) {
	if !s.options.Write {
		return nil, refused{http.StatusForbidden, "the server only reads: start corbel ui with --write"}
	}
	var asked actionRequest
	if err := readJSON(r, &asked); err != nil {
		return nil, err
	}
	reader, c, err := s.component(r.Context(), addressIn(r))
	if err != nil {
		return nil, err
	}
	if asked.UID != "" && asked.UID != c.Object.GetUID() {
		return nil, refused{http.StatusConflict, fmt.Sprintf("%s was deleted and created again meanwhile; nothing was written", c)}
	}
	decide, err := asked.decision(c)
	if err != nil {
		return nil, err
	}
	c, report, err := steering.Annotate(r.Context(), s.cluster.Client, reader, c, func(c inspect.Component) (steering.Annotations, string, error) {
		set, text, err := decide(c)
		if err != nil {
			err = refused{http.StatusConflict, err.Error()}
		}
		return set, text, err
	})
	if err != nil {
		return nil, err
	}
	if other := steering.SuspendedBy(c); asked.Action == "resume" && other != "" {
		report = "is still suspended by its " + other + ": change that"
	}
	return map[string]string{"text": c.ResourceName() + " " + report}, nil
}

// decision returns what is asked for.
func (a actionRequest) decision(c inspect.Component) (steering.Decision, error) {
	if name := strings.ToLower(c.Type.Kind) + "/" + c.Object.GetName(); strings.HasSuffix(a.Action, "rollback") && a.Confirm != name {
		return nil, bad("the confirmation must be %q", name)
	}
	switch a.Action {
	case "reconcile":
		return steering.Reconcile(steering.Now(time.Now())), nil
	case "suspend":
		return steering.Suspend(time.Time{}, ""), nil
	case "resume":
		return steering.Resume, nil
	case "rollback":
		if a.Revision <= 0 {
			return nil, bad("a rollback needs the number of a revision")
		}
		return steering.Rollback(a.Revision), nil
	case "end-rollback":
		return steering.EndRollback, nil
	}
	return nil, bad("there is no action %q", a.Action)
}
