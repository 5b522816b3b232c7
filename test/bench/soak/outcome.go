// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corbel-run/corbel/test/bench/subject"
)

// Outcome is what a run showed.
type Outcome struct {
	Lines        []Line
	Disturbances int
	// Early and Late are the operator in peace, after three tenths of the time and at the end.
	Early, Late Line
	// Recovery is how long it took, once the API server was there again, until drift was
	// noticed and repaired.
	Recovery time.Duration
	// Rest is what it did when nothing happened.
	Rest Line
	// Findings are what was not as it should be in the end.
	Findings
	// Deaths are the operators that ended by themselves.
	Deaths []string
	// Storm counts the requests and their faults, and Strikes what happened to processes.
	Storm   string
	Strikes map[string]int
	// RollOuts are what the roll-outs of versions came to, and Spread the broken versions that reached too many components.
	RollOuts, Spread []string
	// Violations are the writes that broke an invariant, of so many Audited.
	Violations []string
	Audited    int
}

// Line is what the operator used since the line before.
type Line struct {
	What         string
	At           time.Duration
	Disturbances int
	subject.Usage
}

// together is what was used in two times, and the least that was held in either.
func together(a, b subject.Usage) subject.Usage {
	requests := maps.Clone(a.Requests)
	for request, n := range b.Requests {
		requests[request] += n
	}
	return subject.Usage{
		Traffic: subject.Traffic{Requests: requests, Watches: a.Watches + b.Watches, Events: a.Events + b.Events, Leases: a.Leases + b.Leases},
		CPU:     a.CPU + b.CPU, PeakHeap: max(a.PeakHeap, b.PeakHeap),
		Heap: min(a.Heap, b.Heap), Goroutines: min(a.Goroutines, b.Goroutines),
	}
}

// String returns the line as one of a table.
func (l Line) String() string {
	return fmt.Sprintf("%7s  %13d  %8d  %7d  %6d  %8s  %9.1f  %8.1f  %10d  %s", l.At.Round(time.Second), l.Disturbances,
		l.Total(), l.Writes(), l.Events, l.CPU.Round(10*time.Millisecond), mebibytes(l.PeakHeap), mebibytes(l.Heap), l.Goroutines, l.What)
}

const head = "     at  disturbances  requests   writes  events       CPU  peak MiB  heap MiB  goroutines"

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func (o *Outcome) last() Line { return o.Lines[len(o.Lines)-1] }

// Condition is something that must hold at the end.
type Condition struct {
	Name   string
	Holds  bool
	Detail string
}

// What may be more at the end than early. Both times nothing happens, all components
// are there, and the heap is without garbage. Allowed is that connections come and go,
// that components were created anew with other numbers of objects, and what is kept
// for some minutes only: the store of the watches remembers what it saw deleted for
// ten, and client-go keeps a copy of each event for six to twelve, to count the next
// one like it.
const (
	moreHeap       = 0.10    // of the heap
	moreHeapBytes  = 1 << 20 // or, for small heaps
	eventBytes     = 1200    // of a copy and what it is found by, from a profile
	deletedBytes   = 400     // of what is remembered of a deleted object, likewise
	keptFor        = 12 * time.Minute
	moreGoroutines = 10
)

// kept counts the events and deletions of which something may be kept at the end, and
// was not early.
func (o *Outcome) kept() (events, deletions int) {
	for _, line := range o.Lines {
		if line.At > max(o.Early.At, o.Late.At-keptFor) && line.At <= o.Late.At {
			events += line.Events
			deletions += line.Requests["DELETE configmaps"]
		}
	}
	return events, deletions
}

// allowed is how large the heap may be at the end.
func (o *Outcome) allowed() uint64 {
	events, deletions := o.kept()
	return o.Early.Heap + max(uint64(float64(o.Early.Heap)*moreHeap), moreHeapBytes) + uint64(events)*eventBytes + uint64(deletions)*deletedBytes
}

// Conditions checks the run.
func (o *Outcome) Conditions() []Condition {
	events, deletions := o.kept()
	dependents := 0
	for request, n := range o.Rest.Requests {
		if strings.HasSuffix(request, " configmaps") {
			dependents += n
		}
	}
	return []Condition{
		{"nothing is lost", len(o.Lost) == 0, first(o.Lost)},
		{"nothing of others was touched", len(o.Stolen) == 0, first(o.Stolen)},
		{"nothing is left over", len(o.Left) == 0, first(o.Left)},
		{"everything is Ready and as it should be", len(o.Restless) == 0, first(o.Restless)},
		{"no broken version reached more components than may be unavailable", len(o.Spread) == 0, first(o.Spread)},
		{"no operator ended by itself", len(o.Deaths) == 0, first(o.Deaths)},
		{"goroutines have not grown", o.Late.Goroutines <= o.Early.Goroutines+moreGoroutines,
			fmt.Sprintf("%d early, %d late, %d more are allowed", o.Early.Goroutines, o.Late.Goroutines, moreGoroutines)},
		{"the heap has not grown", o.Late.Heap <= o.allowed(),
			fmt.Sprintf("%.1f MiB early, %.1f MiB late, %.1f MiB are allowed because of %d events and %d deletions",
				mebibytes(o.Early.Heap), mebibytes(o.Late.Heap), mebibytes(o.allowed()), events, deletions)},
		{"at rest, no request for a dependent", dependents == 0, fmt.Sprintf("%d requests", dependents)},
		{"at rest, no write", o.Rest.Writes() == 0, fmt.Sprintf("%d writes", o.Rest.Writes())},
		{"every write was the operator's to make", len(o.Violations) == 0 && o.Audited > 0,
			fmt.Sprintf("%d checked against the audit log; %s", o.Audited, first(o.Violations))},
	}
}

// first counts things, and names the first few.
func first(things []string) string {
	if len(things) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", len(things), strings.Join(things[:min(len(things), 10)], "; "))
}

// Holds reports whether all conditions hold.
func (o *Outcome) Holds() bool {
	return !slices.ContainsFunc(o.Conditions(), func(c Condition) bool { return !c.Holds })
}

// String returns the table of the run and its conditions.
func (o *Outcome) String() string {
	var out strings.Builder
	fmt.Fprintln(&out, head)
	for _, line := range o.Lines {
		fmt.Fprintln(&out, line)
	}
	fmt.Fprintln(&out)
	if o.Storm != "" {
		fmt.Fprintf(&out, "%s; %v\n\n", o.Storm, o.Strikes)
	}
	if len(o.RollOuts) > 0 {
		fmt.Fprintf(&out, "%s\n\n", strings.Join(o.RollOuts, "\n"))
	}
	for _, condition := range o.Conditions() {
		mark := "ok    "
		if !condition.Holds {
			mark = "FAILED"
		}
		fmt.Fprintf(&out, "%s  %s: %s\n", mark, condition.Name, condition.Detail)
	}
	return out.String()
}
