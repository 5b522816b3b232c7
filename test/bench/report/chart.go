// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The measures of the chart, in pixels.
const (
	chartWidth  = 760
	labelWidth  = 150
	barHeight   = 14
	barGap      = 3
	groupGap    = 14
	panelGap    = 46
	valueMargin = 120 // for the text after the longest bar
)

// style takes the colours of the reader's theme where the viewer reports it, and ones that
// can be read on white and on black where it does not.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #6e7781; }
.title { font-size: 14px; font-weight: 600; }
.corbel { fill: #2f81f7; } .flux { fill: #d29922; } .limit { fill: #8b949e; }
@media (prefers-color-scheme: dark) { text { fill: #c9d1d9; } }
@media (prefers-color-scheme: light) { text { fill: #24292f; } }
</style>
`

// bar is one value of one subject.
type bar struct {
	subject Subject
	value   float64
	text    string
}

// Chart draws one size as SVG: what the work on all objects costs, in requests and in time.
func (r *Report) Chart() string {
	size, ok := r.charted()
	if !ok {
		return fmt.Sprintf("<svg xmlns=%q width=\"%d\" height=\"40\">%s<text x=\"0\" y=\"20\">Nothing was measured yet.</text></svg>\n", svgSpace, chartWidth, style)
	}
	d := &drawing{y: 20}
	d.legend()
	name := size.title()
	d.panel("Requests per object, "+name, size, func(samples Samples, subject Subject) bar {
		each := samples.Requests() / float64(size.Total())
		return bar{subject, each, fmt.Sprintf("%.2f", each)}
	})
	d.panel("Time, "+name, size, func(samples Samples, subject Subject) bar {
		seconds, _ := samples.Seconds()
		return bar{subject, seconds, duration(seconds)}
	})
	d.panel("Processor time of the process, "+name, size, func(samples Samples, subject Subject) bar {
		return bar{subject, samples.CPU(), duration(samples.CPU())}
	})
	return fmt.Sprintf("<svg xmlns=%q width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"What work on %s costs\">\n%s%s</svg>\n",
		svgSpace, chartWidth, d.y, chartWidth, d.y, html.EscapeString(name), style, d.out.String())
}

const svgSpace = "http://www.w3.org/2000/svg"

// charted is the size that the goals are said for, or else the first one.
func (r *Report) charted() (Size, bool) {
	if len(r.Sizes) == 0 {
		return Size{}, false
	}
	for _, size := range r.Sizes {
		if size.Components == 1 && size.Objects == 1000 {
			return size, true
		}
	}
	return r.Sizes[0], true
}

type drawing struct {
	out strings.Builder
	y   int
}

func (d *drawing) text(x, y int, class, text string) {
	fmt.Fprintf(&d.out, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
}

func (d *drawing) rect(class string, x, y, width int) {
	fmt.Fprintf(&d.out, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\"/>\n", class, x, y, width, barHeight)
}

func (d *drawing) legend() {
	x := labelWidth
	for _, entry := range []struct {
		subject Subject
		text    string
	}{{Corbel, "Corbel"}, {Flux, "Flux ssa, apply and delete alone"}, {Limit, "limit: a bare client, 16 workers"}} {
		d.rect(string(entry.subject), x, d.y-11, barHeight)
		d.text(x+barHeight+6, d.y, "label", entry.text)
		x += 40 + 7*len(entry.text)
	}
	d.y += panelGap / 2
}

// panel draws the bars of the scenarios that touch every object.
func (d *drawing) panel(title string, size Size, measure func(Samples, Subject) bar) {
	d.y += panelGap / 2
	d.text(0, d.y, "title", title)
	d.y += groupGap
	longest := 0.0
	groups := map[Scenario][]bar{}
	for _, row := range titles {
		for _, subject := range []Subject{Corbel, Flux, Limit} {
			if samples := size.Find(row.scenario, subject); whole[row.scenario] && len(samples) > 0 {
				b := measure(samples, subject)
				groups[row.scenario] = append(groups[row.scenario], b)
				longest = max(longest, b.value)
			}
		}
	}
	for _, row := range titles {
		if len(groups[row.scenario]) == 0 {
			continue
		}
		d.text(0, d.y+barHeight, "label", row.title)
		for _, b := range groups[row.scenario] {
			width := int(math.Round(b.value / max(longest, 1e-9) * (chartWidth - labelWidth - valueMargin)))
			d.rect(string(b.subject), labelWidth, d.y, max(width, 1))
			d.text(labelWidth+max(width, 1)+6, d.y+barHeight-3, "label", b.text)
			d.y += barHeight + barGap
		}
		d.y += groupGap
	}
}
