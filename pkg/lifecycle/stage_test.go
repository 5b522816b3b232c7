// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "testing"

func TestStageOf(t *testing.T) {
	type row struct {
		name string
		facts
		want Stage
	}
	for _, tc := range []row{
		{"new", facts{}, StageClaim},
		{"ours", facts{claimed: true}, StageApply},
		{"suspended before it was claimed", facts{suspended: true}, StageSkip},
		{"suspended", facts{claimed: true, suspended: true}, StageSkip},
		{"detached is about deletion only", facts{claimed: true, detached: true}, StageApply},
		{"detached and new", facts{detached: true}, StageClaim},
		{"suspended and detached", facts{suspended: true, detached: true}, StageSkip},
		{"suspended and detached and ours", facts{claimed: true, suspended: true, detached: true}, StageSkip},
		{"deleted before it was claimed", facts{deleting: true}, StageIgnore},
		{"deleted before it was claimed, suspended", facts{deleting: true, suspended: true}, StageIgnore},
		{"deleted before it was claimed, detached", facts{deleting: true, detached: true}, StageIgnore},
		{"deleted before it was claimed, both", facts{deleting: true, suspended: true, detached: true}, StageIgnore},
		{"deleted", facts{deleting: true, claimed: true}, StageDelete},
		{"deleted while suspended", facts{deleting: true, claimed: true, suspended: true}, StageDelete},
		{"deleted and detached", facts{deleting: true, claimed: true, detached: true}, StageRelease},
		{"deleted, detached and suspended", facts{deleting: true, claimed: true, detached: true, suspended: true}, StageRelease},
	} {
		if got := stageOf(tc.facts); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
