// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync/atomic"
	"testing"
)

// BenchmarkConfigMaps installs, changes and deletes a component of 1000
// ConfigMaps on a real API server, and reports the requests of the operator.
func BenchmarkConfigMaps(b *testing.B) {
	const n = 1000
	for b.Loop() {
		f := newFixture(b)
		tally := &tally{}
		var renderings atomic.Int64
		o := f.startWith(b, configMaps(n, &renderings), tally.wrap)

		bundle := f.bundle(b, map[string]string{"all": "1", "one": "1"})
		f.ready(b, bundle)
		b.ReportMetric(float64(tally.take().total())/n, "install-requests/object")

		f.update(b, bundle, map[string]string{"all": "1", "one": "2"})
		f.ready(b, bundle)
		b.ReportMetric(float64(tally.take().writes), "change-one-writes")

		f.update(b, bundle, map[string]string{"all": "2", "one": "2"})
		f.ready(b, bundle)
		b.ReportMetric(float64(tally.take().total())/n, "change-all-requests/object")

		if err := f.Delete(b.Context(), bundle); err != nil {
			b.Fatal(err)
		}
		f.gone(b, bundle)
		b.ReportMetric(float64(tally.take().total())/n, "delete-requests/object")
		o.stop(b)
	}
}
