// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
)

// mostOnPage is the number of objects of the largest component that the page compares with its peers.
const mostOnPage = 1000

// onPage are the rows of the comparisons on the page.
var onPage = []Scenario{Install, ChangeAll, ChangeOne, Unchanged, NewChart, Rest, Restart, Drift, Deletion, Delete}

// Page returns the tables of performance.md: work beside the peers, fleets, memory and plans.
// Tables has all sizes, goals and processor times.
func (r *Report) Page() string {
	if len(r.Sizes)+len(r.Plans) == 0 {
		return "Nothing was measured yet.\n"
	}
	var components, fleets, plans []string
	for _, size := range r.Sizes {
		switch {
		case size.Components == 1 && size.Objects <= mostOnPage:
			components = append(components, size.besidePeers())
		case len(size.Find(Install, Helm)) > 0:
			fleets = append(fleets, size.besidePeers())
		}
	}
	if len(r.Plans) > 0 {
		largest := r.Plans[len(r.Plans)-1]
		plans = []string{largest.titled() + largest.planTable(largest.cost)}
	}
	var out []string
	for _, section := range []struct {
		title  string
		tables []string
	}{{"One component", components}, {"Fleets", append(fleets, r.fleets())}, {"Memory", []string{r.memory()}}, {"Plans and rollback", plans}} {
		if text := strings.Trim(strings.Join(section.tables, "\n"), "\n"); text != "" {
			out = append(out, "## "+section.title+"\n\n"+text+"\n")
		}
	}
	return strings.Join(out, "\n")
}

// titled names the size, the revision, the day and the machine.
func (s Size) titled() string {
	return fmt.Sprintf("%s: revision %s, %s, %s, load %.1f, %s.\n\n", s.title(), s.Where.Revision, s.day(), s.Where.Processor, s.Where.Load, s.averaged())
}

func (s Size) day() string { return s.Where.Time.Format("2006-01-02") }

// besidePeers compares requests and time with those of the peers.
func (s Size) besidePeers() string {
	subjects, t := []Subject{Corbel, Flux, Limit}, table{head: []string{"requests; time", "Corbel", "Flux ssa", "limit"}}
	if s.Chart {
		subjects, t.head = []Subject{Corbel, Helm, Kubectl, Limit}, []string{"requests; time", "Corbel", "Helm", "kubectl apply", "limit"}
	}
	for _, row := range titles {
		if !slices.Contains(onPage, row.scenario) {
			continue
		}
		var cells []string
		for _, subject := range subjects {
			cells = append(cells, s.cost(row.scenario, subject))
		}
		t.add(row.title, cells...)
	}
	return s.titled() + t.String()
}

// cost is the number of requests and the time of a scenario; at rest it is the requests alone.
func (s Size) cost(scenario Scenario, subject Subject) string {
	samples := s.Find(scenario, subject)
	if len(samples) == 0 {
		return ""
	}
	requests := grouped(int(samples.Requests() + 0.5))
	if scenario == Rest {
		return requests
	}
	seconds, missed := samples.Seconds()
	if missed {
		return fmt.Sprintf("not within %.0f s", seconds)
	}
	return requests + "; " + duration(seconds)
}

// fleets has a row for Corbel and one for the limit of each fleet.
func (r *Report) fleets() string {
	scenarios := []Scenario{Install, ChangeAll, NewChart, Restart, Delete}
	t := table{head: []string{"requests; time", "measured", "install", "change all", "another chart", "restart", "delete"}}
	for _, size := range r.Sizes {
		if size.Components == 1 || len(size.Find(Install, Helm)) > 0 {
			continue
		}
		for _, subject := range []Subject{Corbel, Limit} {
			title, cells := size.title(), []string{size.Where.Revision + ", " + size.day()}
			if subject == Limit {
				title, cells = "– limit", []string{""}
			}
			for _, scenario := range scenarios {
				cells = append(cells, size.cost(scenario, subject))
			}
			t.add(title, cells...)
		}
	}
	return t.filled()
}

// memory has a row for each size, those with charts first.
func (r *Report) memory() string {
	t := table{head: []string{"size", "measured", "heap at rest", "bytes an object", "resident, at most"}}
	sizes := slices.Clone(r.Sizes)
	slices.SortStableFunc(sizes, func(a, b Size) int {
		switch {
		case a.Chart == b.Chart:
			return b.Total() - a.Total()
		case a.Chart:
			return -1
		}
		return 1
	})
	for _, size := range sizes {
		rest := size.Find(Rest, Corbel)
		if len(rest) == 0 {
			continue
		}
		resident := ""
		if rss := median(size.Find(Install, Corbel), func(s Sample) float64 { return float64(s.PeakRSS) }); rss > 0 {
			resident = mebibytes(rss)
		}
		t.add(size.title(), size.Where.Revision+", "+size.day(), mebibytes(rest.Heap()), fmt.Sprintf("%.0f", size.bytesPerObject()), resident)
	}
	return t.filled()
}

// bytesPerObject is the heap that an object adds to an operator at rest.
func (s Size) bytesPerObject() float64 {
	return (s.Find(Rest, Corbel).Heap() - s.Find(Start, Corbel).Heap()) / float64(s.Total())
}
