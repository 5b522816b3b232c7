// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/internal/report"
)

func TestTheConditionAboutManyDriftedObjectsStaysShort(t *testing.T) {
	var many []report.Deviation
	for range 100 {
		key := report.Key{Kind: "ConfigMap", Namespace: "shop", Name: strings.Repeat("n", 250)}
		many = append(many, report.Deviation{Key: key, Drift: report.Drift{
			Manager: strings.Repeat("m", 120), At: time.Now(), Fields: []string{strings.Repeat("f", 120), strings.Repeat("g", 120)},
		}})
	}
	if message := driftMessage(many); len(message) > 1024 || !strings.HasSuffix(message, "and 97 more") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}
