// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"regexp"
	"sync"
)

var (
	components = gauge("corbel_components",
		"Components by state and by the reason of condition Ready; beyond 64 different ones, reasons count as Other.", "controller", "state", "reason")
	dependents = gauge("corbel_dependents",
		"Dependent objects in the inventories, by phase.", "controller", "phase")
)

// Component are the counted properties of a component.
type Component struct {
	State, Reason string
	// Dependents is the number of dependent objects by phase.
	Dependents map[string]int
}

// Population keeps the gauges of one controller: the sums over its components.
// It is safe for concurrent use.
type Population[K comparable] struct {
	controller string

	mu    sync.Mutex
	known map[K]Component
}

// NewPopulation returns an empty population.
func NewPopulation[K comparable](controller string) *Population[K] {
	return &Population[K]{controller: controller, known: map[K]Component{}}
}

// Set counts the component as it is now, and no longer as it was.
func (p *Population[K]) Set(key K, c Component) {
	c.Dependents = maps.Clone(c.Dependents)
	c.Reason = knownReasons.label(c.Reason)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(p.known[key], -1)
	p.known[key] = c
	p.count(c, 1)
}

// Remove stops counting the component.
func (p *Population[K]) Remove(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(p.known[key], -1)
	delete(p.known, key)
}

func (p *Population[K]) count(c Component, sign float64) {
	if c.State != "" {
		components.WithLabelValues(p.controller, c.State, c.Reason).Add(sign)
	}
	for phase, n := range c.Dependents {
		dependents.WithLabelValues(p.controller, phase).Add(sign * float64(n))
	}
}

const (
	// other stands for values that must not become labels.
	other = "Other"
	// maxReasons bounds how many reasons become labels.
	//
	// Unit: reasons
	// Limit: the reasons that become values of the label reason of corbel_components; further ones count as
	// Other.
	maxReasons = 64
)

// reasonLike is the form of our reasons, which no name of an object has.
var reasonLike = regexp.MustCompile(`^[A-Z][A-Za-z]{1,63}$`)

// reasonSet bounds the reasons: hooks and generators may make up theirs.
type reasonSet struct {
	mu    sync.Mutex
	known map[string]bool
}

var knownReasons = reasonSet{known: map[string]bool{}}

func (r *reasonSet) label(reason string) string {
	if !reasonLike.MatchString(reason) {
		return other
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known[reason] && len(r.known) >= maxReasons {
		return other
	}
	r.known[reason] = true
	return reason
}
