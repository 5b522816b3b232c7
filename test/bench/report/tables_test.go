// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a size with two rounds, in which some goals are missed.
func example() Size {
	size := Size{Objects: 1000, Components: 1, Rounds: 2, Where: Where{Revision: "abc", Cores: 2, Kubernetes: "v1"}}
	for _, seconds := range []float64{1, 3} {
		size.Add(Install, Corbel, Sample{Seconds: seconds, Total: 1040, Writes: 1040, Events: 2})
		size.Add(Install, Limit, Sample{Seconds: 2, Total: 1000, Writes: 1000})
		size.Add(ChangeOne, Corbel, Sample{Seconds: 0.05, Total: 9})
		size.Add(Restart, Corbel, Sample{Total: 7, Requests: map[string]int{"DISCOVERY": 3}})
	}
	size.Add(Drift, Corbel, Sample{Seconds: 3, Missed: true})
	size.Add(Start, Corbel, Sample{Heap: 1 << 20})
	size.Add(Rest, Corbel, Sample{Seconds: 20, Heap: 1<<20 + 2000*1000})
	return size
}

func TestTables(t *testing.T) {
	text := (&Report{Sizes: []Size{example()}}).Tables()
	for _, want := range []string{
		"### 1,000 ConfigMaps",
		"| install | 1,040 (1.04 per object) | ✓ ≤ 1.05 per object |  | 1,000 (1.00 per object) |",
		"| install | 2.00 s (1.0 ×) | ✓ ≤ 1.5 × limit |  | 2.00 s |",
		"| change one | 9 | ✗ ≤ 8 |  |  |",
		"| operator restarted, nothing changed | 7 | ✓ ≤ 2 per type + 2 per component, no write |  |  |",
		"| changed dependent repaired | not within 3 s | ✗ ≤ 100 ms |  |  |",
		"at most 2 in one scenario (install); the goal is 5 a transition: ✓",
		"which is 2000 bytes an object; the goal is 1536: ✗",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "deleted dependent") {
		t.Error("there is a row of what was not measured")
	}
}

// TestThePublishedReportIsTheOneMeasured holds the document to the data beside it.
func TestThePublishedReportIsTheOneMeasured(t *testing.T) {
	const docs = "../../../docs"
	report, err := Load(docs + "/performance.json")
	if err != nil {
		t.Fatal(err)
	}
	published, err := os.ReadFile(docs + "/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.replace(string(published))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(published)); diff != "" {
		t.Errorf("docs/performance.md is not what make bench wrote (-want +got):\n%s", diff)
	}
	chart, err := os.ReadFile(docs + "/performance.svg")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report.Chart(), string(chart)); diff != "" {
		t.Errorf("docs/performance.svg is not what make bench drew (-want +got):\n%s", diff)
	}
}

func TestPublishKeepsWhatIsWrittenByHand(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "performance.md")
	if err := os.WriteFile(path, []byte("before\n"+beginMarker+"stale\n"+end+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := &Report{}
	fleet := example()
	fleet.Components = 2
	for _, size := range []Size{fleet, example(), example()} {
		report.Put(size)
	}
	if len(report.Sizes) != 2 || report.Sizes[0].Components != 1 {
		t.Errorf("%d sizes, want the newer of the two that are alike, and then the fleet", len(report.Sizes))
	}
	if err := report.Publish(folder); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if !strings.HasPrefix(text, "before\n") || !strings.HasSuffix(text, "\nafter\n") || strings.Contains(text, "stale") || !strings.Contains(text, "### 1,000") {
		t.Errorf("the document is:\n%s", text)
	}
}
