// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Report is what was measured for several sizes, the smallest first, and then fleets.
type Report struct {
	Sizes []Size `json:"sizes"`
	// Plans are what it costs to find out what would be changed, and to roll back.
	Plans []Size `json:"plans,omitempty"`
}

// Size is what was measured with one number of objects, and where.
type Size struct {
	Objects    int `json:"objects"`    // of each component
	Components int `json:"components"` // more than one are a fleet
	Rounds     int `json:"rounds"`
	// Chart: each component is the objects of a chart, as in the benchmark of Flux.
	Chart   bool     `json:"chart,omitempty"`
	Where   Where    `json:"where"`
	Results []Result `json:"results"`
	// Status is the size of the component when all objects are there.
	Status StatusSize `json:"status"`
}

// Where is the machine, and what ran on it.
type Where struct {
	Time       time.Time `json:"time"`
	Revision   string    `json:"revision"`
	Cores      int       `json:"cores"`
	Processor  string    `json:"processor"`
	MemoryGiB  int       `json:"memoryGiB"`
	System     string    `json:"system"`
	Go         string    `json:"go"`
	Kubernetes string    `json:"kubernetes"`
	// Load is how many processes of others needed a core before the run, averaged
	// over a minute.
	Load float64 `json:"load"`
}

// StatusSize is how large a component and its record are, in bytes.
type StatusSize struct {
	Component   int `json:"component"`
	Secrets     int `json:"secrets"`
	SecretBytes int `json:"secretBytes"`
}

// Subject is the program that was measured.
type Subject string

// The subjects.
const (
	Corbel  Subject = "corbel"
	Limit   Subject = "limit"
	Flux    Subject = "flux"
	Kubectl Subject = "kubectl" // with plans, and charts
	Helm    Subject = "helm"    // with plans, and charts
)

// Scenario is what was done.
type Scenario string

// The scenarios, in the order in which they are done and shown.
const (
	Start      Scenario = "start"
	Install    Scenario = "install"
	Healthy    Scenario = "healthy"
	ChangeOne  Scenario = "change-one"
	Unchanged  Scenario = "unchanged"
	ChangeAll  Scenario = "change-all"
	Edit       Scenario = "edit"      // of one component, right after all others
	NewChart   Scenario = "new-chart" // of the operator
	FailOver   Scenario = "fail-over" // from the election to the write of an edit
	Rest       Scenario = "rest"
	Restart    Scenario = "restart"
	Drift      Scenario = "drift"
	Deletion   Scenario = "deletion"
	Delete     Scenario = "delete"
	Terminated Scenario = "terminated"
)

// The scenarios of plans, in the order in which they are done and shown. ChangeAll is done before
// Rollback, which takes it back.
const (
	PlanInstall   Scenario = "plan-install"
	PlanUnchanged Scenario = "plan-unchanged"
	PlanOne       Scenario = "plan-one"
	PlanAll       Scenario = "plan-all"
	PlanDelete    Scenario = "plan-delete"
	Rollback      Scenario = "rollback"
)

// Result is what one subject needed for one scenario.
type Result struct {
	Scenario Scenario `json:"scenario"`
	Subject  Subject  `json:"subject"`
	Samples  []Sample `json:"samples"`
}

// Sample is one time that it was done. Requests are all but watches, events and
// leases, by verb and resource.
type Sample struct {
	Seconds float64 `json:"seconds"`
	Missed  bool    `json:"missed,omitempty"` // it did not happen within Seconds
	// HalfSeconds is when half of the components were done.
	HalfSeconds float64        `json:"halfSeconds,omitempty"`
	PeakRSS     uint64         `json:"peakRSSBytes,omitempty"`
	Requests    map[string]int `json:"requests"`
	Total       int            `json:"total"`
	Writes      int            `json:"writes"`
	Watches     int            `json:"watches"`
	Events      int            `json:"events"`
	CPUSeconds  float64        `json:"cpuSeconds"`
	PeakHeap    uint64         `json:"peakHeapBytes"`
	Heap        uint64         `json:"heapBytes,omitempty"` // without garbage, where it was asked for
	Goroutines  int            `json:"goroutines"`
}

// Add adds a sample.
func (s *Size) Add(scenario Scenario, subject Subject, sample Sample) {
	for i := range s.Results {
		if r := &s.Results[i]; r.Scenario == scenario && r.Subject == subject {
			r.Samples = append(r.Samples, sample)
			return
		}
	}
	s.Results = append(s.Results, Result{Scenario: scenario, Subject: subject, Samples: []Sample{sample}})
}

// Find returns the samples of a scenario, none if it was not measured.
func (s *Size) Find(scenario Scenario, subject Subject) Samples {
	for _, r := range s.Results {
		if r.Scenario == scenario && r.Subject == subject {
			return r.Samples
		}
	}
	return nil
}

// Total is the number of dependent objects.
func (s *Size) Total() int { return s.Objects * s.Components }

// Put replaces what was measured with the same numbers of components and objects.
func (r *Report) Put(size Size) { r.Sizes = put(r.Sizes, size) }

// PutPlans replaces what was measured of plans with the same numbers.
func (r *Report) PutPlans(size Size) { r.Plans = put(r.Plans, size) }

func put(sizes []Size, size Size) []Size {
	sizes = slices.DeleteFunc(sizes, func(s Size) bool {
		return s.Objects == size.Objects && s.Components == size.Components && s.Chart == size.Chart
	})
	sizes = append(sizes, size)
	slices.SortFunc(sizes, func(a, b Size) int {
		return cmp.Or(cmp.Compare(a.Components, b.Components), cmp.Compare(a.Objects, b.Objects))
	})
	return sizes
}

// Load reads a report; one that does not exist is empty.
func Load(path string) (*Report, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Report{}, nil
	}
	if err != nil {
		return nil, err
	}
	report := &Report{}
	if err := json.Unmarshal(content, report); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return report, nil
}

// Save writes a report.
func (r *Report) Save(path string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}
