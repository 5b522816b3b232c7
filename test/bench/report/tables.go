// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"strings"
)

// titles are the rows of the tables, in their order.
var titles = []struct {
	scenario Scenario
	title    string
}{
	{Install, "install"},
	{Healthy, "– Flux: health check after it"},
	{ChangeAll, "change all"},
	{ChangeOne, "change one"},
	{Edit, "one changed right after all others"},
	{NewChart, "operator with another version of the chart"},
	{FailOver, "fail-over: from the election to the write of an edit"},
	{Unchanged, "spec changed, nothing rendered differently"},
	{Rest, "20 s at rest"},
	{Restart, "operator restarted, nothing changed"},
	{Drift, "changed dependent repaired"},
	{Deletion, "deleted dependent repaired"},
	{Delete, "delete"},
	{Terminated, "– Flux: wait for the end of deletion"},
}

// Tables returns all that was measured as Markdown.
func (r *Report) Tables() string {
	if len(r.Sizes)+len(r.Plans) == 0 {
		return "Nothing was measured yet.\n"
	}
	var out strings.Builder
	for _, size := range r.Sizes {
		fmt.Fprintf(&out, "### %s\n\n%s\n", size.title(), size.where())
		fmt.Fprintf(&out, "Requests (✓ goal reached, ✗ missed):\n\n%s\n", size.requests())
		fmt.Fprintf(&out, "Time:\n\n%s\n", size.times())
		fmt.Fprintf(&out, "Processor time and memory of the process:\n\n%s\n", size.resources())
		fmt.Fprintf(&out, "%s\n", size.remarks())
	}
	for _, size := range r.Plans {
		fmt.Fprintf(&out, "%s\n", size.plans())
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func (s Size) title() string {
	if s.Chart {
		return fmt.Sprintf("%s components of a chart with %d objects", grouped(s.Components), s.Objects)
	}
	if s.Components > 1 {
		return fmt.Sprintf("%s components of %s ConfigMaps", grouped(s.Components), grouped(s.Objects))
	}
	return grouped(s.Objects) + " ConfigMaps"
}

func (s Size) where() string {
	w := s.Where
	return fmt.Sprintf("Revision %s, %s; %d cores (%s) and %d GiB of memory, %s, %s, Kubernetes %s; %s; load average of the machine before the run: %.1f.\n",
		w.Revision, w.Time.Format("2006-01-02 15:04 MST"), w.Cores, w.Processor, w.MemoryGiB, w.System, w.Go, w.Kubernetes, s.averaged(), w.Load)
}

// averaged is the number of rounds behind a figure.
func (s Size) averaged() string {
	if s.Rounds == 1 {
		return "one round"
	}
	return fmt.Sprintf("medians of %d rounds", s.Rounds)
}

func (s Size) requests() string {
	return s.compared(requestsGoal, s.requestsOf)
}

// compared is a table with a column for each subject.
func (s Size) compared(goal func(Size, Scenario, Samples) (string, bool), cell func(Scenario, Subject) string) string {
	subjects, t := []Subject{Flux, Limit}, table{head: []string{"work", "Corbel", "goal", "Flux ssa", "limit"}}
	if s.Chart {
		subjects, t.head = []Subject{Helm, Kubectl, Limit}, []string{"work", "Corbel", "goal", "Helm", "kubectl apply", "limit"}
	}
	for _, row := range titles {
		samples := s.Find(row.scenario, Corbel)
		text, reached := goal(s, row.scenario, samples)
		cells := []string{cell(row.scenario, Corbel), verdict(samples, text, reached)}
		for _, subject := range subjects {
			cells = append(cells, cell(row.scenario, subject))
		}
		t.add(row.title, cells...)
	}
	return t.String()
}

func (s Size) requestsOf(scenario Scenario, subject Subject) string {
	samples := s.Find(scenario, subject)
	if len(samples) == 0 {
		return ""
	}
	if _, missed := samples.Seconds(); missed {
		return "–"
	}
	text := grouped(int(samples.Requests() + 0.5))
	if s.Chart && samples.Requests() >= float64(s.Components) {
		return text + fmt.Sprintf(" (%.1f per component)", samples.Requests()/float64(s.Components))
	}
	if samples.Requests() >= float64(s.Total()) {
		text += fmt.Sprintf(" (%.2f per object)", samples.Requests()/float64(s.Total()))
	}
	return text
}

func (s Size) times() string {
	return s.compared(timeGoal, func(scenario Scenario, subject Subject) string {
		if scenario == Rest {
			return ""
		}
		return s.timeOf(scenario, subject)
	})
}

func (s Size) timeOf(scenario Scenario, subject Subject) string {
	samples := s.Find(scenario, subject)
	if len(samples) == 0 {
		return ""
	}
	seconds, missed := samples.Seconds()
	if missed {
		return fmt.Sprintf("not within %.0f s", seconds)
	}
	text := duration(seconds)
	if limit, _ := s.Find(scenario, Limit).Seconds(); subject != Limit && limit > 0 && whole[scenario] {
		text += fmt.Sprintf(" (%.1f ×)", seconds/limit)
	}
	return text
}

func (s Size) resources() string {
	t := table{head: []string{"work", "Corbel: CPU", "peak heap", "heap after", "goroutines", "Flux ssa: CPU", "peak heap", "limit: CPU", "peak heap"}}
	for _, row := range titles {
		corbel, flux, limit := s.Find(row.scenario, Corbel), s.Find(row.scenario, Flux), s.Find(row.scenario, Limit)
		t.add(row.title,
			value(corbel, duration(corbel.CPU())), value(corbel, mebibytes(corbel.Peak())), value(corbel, mebibytes(corbel.Heap())),
			value(corbel, strconv.Itoa(int(corbel.Goroutines()))),
			value(flux, duration(flux.CPU())), value(flux, mebibytes(flux.Peak())),
			value(limit, duration(limit.CPU())), value(limit, mebibytes(limit.Peak())))
	}
	return t.String()
}

// remarks are what is not said of one scenario.
func (s Size) remarks() string {
	events, during := 0.0, "any"
	for _, row := range titles {
		if n := s.Find(row.scenario, Corbel).Events(); n > events {
			events, during = n, row.title
		}
	}
	if s.Components > 1 {
		return fmt.Sprintf("- Events: at most %g a component (%s).\n%s%s", events/float64(s.Components), during, s.halves(), s.memory())
	}
	return fmt.Sprintf("- Events: at most %g in one scenario (%s); the goal is %d a transition: %s.\n", events, during, maxEvents, mark(events <= maxEvents)) +
		fmt.Sprintf("- The component has %s bytes, and %d Secrets hold %s bytes of its record.\n", grouped(s.Status.Component), s.Status.Secrets, grouped(s.Status.SecretBytes)) +
		s.memory()
}

// halves says when half of the components were done, and how large the process was.
func (s Size) halves() string {
	var out strings.Builder
	for _, row := range titles {
		samples := s.Find(row.scenario, Corbel)
		half := median(samples, func(s Sample) float64 { return s.HalfSeconds })
		if seconds, _ := samples.Seconds(); half > 0 && whole[row.scenario] {
			fmt.Fprintf(&out, "- Half of the components are Ready after %.0f %% of the time (%s).\n", 100*half/seconds, row.title)
		}
	}
	installs := s.Find(Install, Corbel)
	if rss := median(installs, func(s Sample) float64 { return float64(s.PeakRSS) }); rss > 0 {
		fmt.Fprintf(&out, "- Resident memory: at most %s during the installation", mebibytes(rss))
		if s.Chart {
			fmt.Fprintf(&out, "; the goal is %s: %s", mebibytes(maxChartMemory), mark(rss <= maxChartMemory))
		}
		out.WriteString(".\n")
	}
	return out.String()
}

// memory is what the heap holds for each object.
func (s Size) memory() string {
	start, rest := s.Find(Start, Corbel), s.Find(Rest, Corbel)
	if len(start) == 0 || len(rest) == 0 {
		return ""
	}
	bytes := s.bytesPerObject()
	line := fmt.Sprintf("- Heap without garbage: %s without a component, %s at rest, which is %.0f bytes an object", mebibytes(start.Heap()), mebibytes(rest.Heap()), bytes)
	if s.Objects >= 1000 { // with few objects other things count more
		line += fmt.Sprintf("; the goal is %d: %s", maxBytesPerObject, mark(bytes <= maxBytesPerObject))
	}
	return line + ".\n"
}
