// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
