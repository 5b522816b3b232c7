// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"slices"
	"time"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/why"
)

// explanation is why a component is not ready.
type explanation struct {
	why.Chain
	Text string `json:"text"`
}

func (s *Server) why(r *http.Request, _ *inspect.Reader, c inspect.Component) (any, error) {
	if c.Mistake != nil {
		return nil, c.Mistake
	}
	collector := why.Collector{Reader: s.cluster.Client}
	chain, err := collector.Explain(r.Context(), why.Facts{Object: c.Object, Status: c.Status, Reconciler: c.Reconciler}, time.Now)
	if err != nil {
		return nil, err
	}
	return explanation{chain, chain.Text(time.Now())}, nil
}

// eventList is the answer with events, the latest last.
type eventList struct {
	Items  []inspect.ObjectEvent `json:"items"`
	Unread string                `json:"unread,omitempty"`
}

// maxEvents bounds how many events are sent: the latest.
const maxEvents = 500

// events lists those about a component and all that belongs to it, or about one object.
func (s *Server) events(r *http.Request, reader *inspect.Reader, v view) (any, error) {
	key, about := keyIn(r), v.dependents
	if key != "" {
		d, err := v.find(key)
		if err != nil {
			return nil, err
		}
		about = []inspect.Dependent{d}
	}
	events, unread := reader.Events(r.Context(), v.component, about)
	if unread != nil && len(events) == 0 {
		return nil, unread
	}
	events = slices.DeleteFunc(events, func(e inspect.ObjectEvent) bool { return key != "" && e.Object == v.component.String() })
	list := eventList{Items: events[max(0, len(events)-maxEvents):]}
	if unread != nil {
		list.Unread = unread.Error()
	}
	return list, nil
}
