// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// TestThePublishedReportIsTheOneMeasured holds the document to the data beside it.
func TestThePublishedReportIsTheOneMeasured(t *testing.T) {
	const docs = "../../../docs/evidence"
	report := check.Must(Load(docs + "/performance.json"))(t)
	published := check.Must(os.ReadFile(docs + "/performance.md"))(t)
	want := check.Must(report.replace(string(published)))(t)
	check.EqualNamed(t, "docs/evidence/performance.md is not what make bench wrote", want, string(published))
	chart := check.Must(os.ReadFile(docs + "/performance.svg"))(t)
	check.EqualNamed(t, "docs/evidence/performance.svg is not what make bench drew", report.Chart(), string(chart))
}
