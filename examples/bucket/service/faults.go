// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"io"
	"net/http"
	"net/http/httptest"
)

// Fault is a way in which a request goes wrong.
type Fault string

const (
	// FaultRefuse answers 503 and does nothing.
	FaultRefuse Fault = "Refuse"
	// FaultLose does what was asked for and closes the connection without an answer.
	FaultLose Fault = "Lose"
	// FaultHang does what was asked for and does not answer until the client gives up.
	FaultHang Fault = "Hang"
)

// Fail lets the next requests that are not reads go wrong, in this order.
func (s *Service) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Faults returns how many faults are still to come.
func (s *Service) Faults() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults)
}

func (s *Service) nextFault(r *http.Request) (next Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet || len(s.faults) == 0 {
		return ""
	}
	next, s.faults = s.faults[0], s.faults[1:]
	return next
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch s.nextFault(r) {
	case FaultRefuse:
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	case FaultLose:
		s.mux.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case FaultHang:
		s.mux.ServeHTTP(httptest.NewRecorder(), r)
		// The server notices that the client gives up only when the body was read.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	default:
		s.mux.ServeHTTP(w, r)
	}
}
