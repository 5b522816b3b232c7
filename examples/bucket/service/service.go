// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// maxQuota is what the service allows.
const maxQuota = 1000

// Bucket is a bucket of the service.
type Bucket struct {
	ID string `json:"id"`
	// Key is the idempotency key that it was created with.
	Key     string   `json:"key"`
	Quota   int64    `json:"quota"`
	Objects []string `json:"objects,omitempty"`
}

// Service is the service, an http.Handler.
type Service struct {
	mux *http.ServeMux

	mu      sync.Mutex
	buckets map[string]*Bucket
	created int
	puts    map[string]bool // the idempotency keys of objects
	faults  []Fault
}

// New returns a service without buckets.
func New() *Service {
	s := &Service{mux: http.NewServeMux(), buckets: map[string]*Bucket{}, puts: map[string]bool{}}
	s.mux.HandleFunc("POST /buckets", s.create)
	s.mux.HandleFunc("GET /buckets", s.list)
	s.mux.HandleFunc("GET /buckets/{id}", s.withBucket(func(b *Bucket, _ *http.Request) int { return http.StatusOK }))
	s.mux.HandleFunc("PUT /buckets/{id}/quota", s.withBucket(setQuota))
	s.mux.HandleFunc("POST /buckets/{id}/objects", s.withBucket(s.put))
	s.mux.HandleFunc("DELETE /buckets/{id}", s.remove)
	return s
}

// Buckets returns the buckets that there are, and how many were ever created.
func (s *Service) Buckets() (there []Bucket, created int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.buckets)) {
		there = append(there, *s.buckets[id])
	}
	return there, s.created
}

func (s *Service) create(w http.ResponseWriter, r *http.Request) {
	var desired Bucket
	if err := json.NewDecoder(r.Body).Decode(&desired); err != nil || desired.Key == "" {
		http.Error(w, "the body is no bucket with a key", http.StatusBadRequest)
		return
	}
	if desired.Quota > maxQuota {
		http.Error(w, fmt.Sprintf("the quota may be at most %d", maxQuota), http.StatusUnprocessableEntity)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.buckets {
		if b.Key == desired.Key {
			answer(w, http.StatusOK, b)
			return
		}
	}
	s.created++
	b := &Bucket{ID: fmt.Sprintf("b-%d", s.created), Key: desired.Key, Quota: desired.Quota}
	s.buckets[b.ID] = b
	answer(w, http.StatusCreated, b)
}

func (s *Service) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []*Bucket{}
	for _, b := range s.buckets {
		if b.Key == r.URL.Query().Get("key") {
			found = append(found, b)
		}
	}
	answer(w, http.StatusOK, found)
}

func (s *Service) withBucket(do func(*Bucket, *http.Request) int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b, ok := s.buckets[r.PathValue("id")]
		if !ok {
			http.Error(w, "no such bucket", http.StatusNotFound)
			return
		}
		if status := do(b, r); status >= http.StatusBadRequest {
			http.Error(w, "the request is not acceptable", status)
		} else {
			answer(w, status, b)
		}
	}
}

func setQuota(b *Bucket, r *http.Request) int {
	var desired Bucket
	if err := json.NewDecoder(r.Body).Decode(&desired); err != nil || desired.Quota > maxQuota {
		return http.StatusUnprocessableEntity
	}
	b.Quota = desired.Quota
	return http.StatusOK
}

// put adds an object; the same key adds it once.
func (s *Service) put(b *Bucket, r *http.Request) int {
	var object struct{ Key, Name string }
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil || object.Key == "" {
		return http.StatusBadRequest
	}
	if !s.puts[object.Key] {
		s.puts[object.Key] = true
		b.Objects = append(b.Objects, object.Name)
	}
	return http.StatusOK
}

func (s *Service) remove(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets, r.PathValue("id"))
	w.WriteHeader(http.StatusNoContent)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}
