// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import "fmt"

// goal is what a scenario is to cost at most. Requests are those of Corbel; times
// is how much longer than the limit it may take; seconds is how long.
type goal struct {
	requests func(Size) (most float64, text string)
	times    float64
	seconds  float64
	writes   bool // no request may change anything
}

// perObject is the goal of work on every object.
func perObject(Size) (float64, string) { return 1.05, "≤ 1.05 per object" }

func atMost(n float64) func(Size) (float64, string) {
	return func(Size) (float64, string) { return n, fmt.Sprintf("≤ %g", n) }
}

// perType is the goal of a restart: two requests for the one type of dependents and
// two for each component, and one for each Secret of the record. What every client
// asks a server about its types does not count.
func perType(s Size) (float64, string) {
	return 2 + 2*float64(s.Components) + float64(s.Status.Secrets), "≤ 2 per type + 2 per component, no write"
}

var goals = map[Scenario]goal{
	Install:   {requests: perObject, times: 1.5},
	ChangeAll: {requests: perObject, times: 1.5},
	Delete:    {requests: perObject, times: 1.5},
	ChangeOne: {requests: atMost(8)},
	Unchanged: {requests: atMost(6)},
	Rest:      {requests: atMost(2)},
	Restart:   {requests: perType, writes: true},
	Drift:     {seconds: 0.1},
	Deletion:  {seconds: 0.1},
}

// perComponent is the goal of work on every component of a fleet.
func perComponent(most float64) func(Size) (float64, string) {
	return func(s Size) (float64, string) {
		return most * float64(s.Components), fmt.Sprintf("≤ %g per component", most)
	}
}

// chartGoals are those of the workload of Flux.
var chartGoals = map[Scenario]goal{
	Install:   {requests: perComponent(8), times: 1.4},
	ChangeAll: {requests: perComponent(4), times: 1.4},
	NewChart:  {requests: perComponent(6), times: 1.5},
	Edit:      {seconds: 0.5},
	FailOver:  {seconds: 0.3},
	Rest:      {requests: atMost(0)},
	Restart:   {requests: perComponent(0.1), seconds: 3, writes: true},
	Delete:    {requests: perComponent(7), times: 1.4},
}

// goalOf returns what a scenario is to cost. Of other fleets only the restart is measured against a goal: the
// rest depends on how large the components are.
func goalOf(size Size, scenario Scenario) goal {
	if size.Chart {
		return chartGoals[scenario]
	}
	if size.Components > 1 && scenario != Restart {
		return goal{}
	}
	return goals[scenario]
}

// whole are the scenarios that touch every object.
var whole = map[Scenario]bool{Install: true, ChangeAll: true, NewChart: true, Delete: true}

// requestsGoal returns the goal of a scenario as text, and whether it is reached.
func requestsGoal(size Size, scenario Scenario, samples Samples) (text string, reached bool) {
	g := goalOf(size, scenario)
	if g.requests == nil {
		return "", true
	}
	most, text := g.requests(size)
	got := samples.Requests()
	if whole[scenario] && !size.Chart {
		got /= float64(size.Total())
	}
	if scenario == Restart && !size.Chart {
		got -= median(samples, func(s Sample) float64 { return float64(s.Requests["DISCOVERY"]) })
	}
	return text, got <= most && (!g.writes || samples.Writes() == 0)
}

// timeGoal is the same for the time.
func timeGoal(size Size, scenario Scenario, samples Samples) (text string, reached bool) {
	g := goalOf(size, scenario)
	seconds, missed := samples.Seconds()
	switch {
	case g.times > 0:
		limit, _ := size.Find(scenario, Limit).Seconds()
		return fmt.Sprintf("≤ %g × limit", g.times), seconds <= g.times*limit
	case g.seconds > 0:
		return "≤ " + goalSeconds(g.seconds), !missed && seconds <= g.seconds
	default:
		return "", true
	}
}

// The goals of what is not said of one scenario.
const (
	maxEvents         = 5
	maxBytesPerObject = 1536
	maxChartMemory    = 80 << 20
)

func goalSeconds(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%g ms", seconds*1000)
	}
	return fmt.Sprintf("%g s", seconds)
}
