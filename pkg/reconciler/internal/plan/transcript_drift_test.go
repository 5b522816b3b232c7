// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

func driftPolicy(s *story, args []string, _ []line) (string, error) {
	chosen, err := policy.ParseDrift(strings.Join(args, " "))
	for i := range s.driver.desired {
		s.driver.desired[i].Policies.Drift = chosen
	}
	return "", err
}

func contested(s *story, _ []string, lines []line) (string, error) {
	s.driver.contested = map[Key]Contest{}
	for _, l := range lines {
		patience, err := time.ParseDuration(l.value("for"))
		if err != nil {
			return "", err
		}
		last := Drift{Fields: []string{"value"}, Manager: l.value("by"), Missing: l.value("by") == ""}
		s.driver.contested[l.key] = Contest{Until: s.world.now.Add(patience), Last: last}
	}
	return "", nil
}

func strip(o *object, l line) {
	o.marks.OwnerID, o.marks.Ref = "", OwnerRef{}
	o.keyless = l.value("all") != ""
}
