// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"time"

	"github.com/corbel-run/corbel/cmd/corbel/internal/why"
)

// explanation is why a component is not ready.
type explanation struct {
	why.Chain
	Text string `json:"text"`
}

func (s *Server) why(r *http.Request) (any, error) {
	_, c, err := s.component(r.Context(), addressIn(r))
	if err == nil {
		err = c.Mistake
	}
	if err != nil {
		return nil, err
	}
	collector := why.Collector{Reader: s.cluster.client}
	chain, err := collector.Explain(r.Context(), why.Facts{Object: c.Object, Status: c.Status, Reconciler: c.Reconciler}, time.Now)
	if err != nil {
		return nil, err
	}
	return explanation{chain, chain.Text(time.Now())}, nil
}

// eventList is the answer with events, the latest last.
type eventList struct {
	Items  []eventItem `json:"items"`
	Unread string      `json:"unread,omitempty"`
}

// eventItem is an event about a component, a dependent or a pod.
type eventItem struct {
	At      time.Time `json:"at"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Object  string    `json:"object"`
	Count   int32     `json:"count"`
}

// maxEvents bounds how many events are sent: the latest.
const maxEvents = 500

func (s *Server) events(r *http.Request) (any, error) {
	reader, c, err := s.component(r.Context(), addressIn(r))
	if err != nil {
		return nil, err
	}
	dependents, err := reader.Dependents(r.Context(), c)
	if err != nil && len(dependents) == 0 {
		return nil, err
	}
	events, unread := reader.Events(r.Context(), c, dependents)
	if unread != nil && len(events) == 0 {
		return nil, unread
	}
	list := eventList{Items: []eventItem{}}
	if unread != nil {
		list.Unread = unread.Error()
	}
	for _, e := range events[max(0, len(events)-maxEvents):] {
		list.Items = append(list.Items, eventItem{e.Last, e.Type, e.Reason, e.Message, e.Object, e.Count})
	}
	return list, nil
}
