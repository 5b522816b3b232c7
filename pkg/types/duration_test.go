// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/types"
)

func TestEverythingCanBeDecodedIntoADurationAndComesOutAsItWas(t *testing.T) {
	tests := []struct {
		in, out string
		want    time.Duration
		mistake string
	}{
		{in: `"10m"`, out: `"10m0s"`, want: 10 * time.Minute},
		{in: `"1h30m"`, out: `"1h30m0s"`, want: 90 * time.Minute},
		{in: `"-5m"`, out: `"-5m0s"`, want: -5 * time.Minute},
		{in: `"0s"`, out: `"0s"`}, {in: `"1ns"`, out: `"1ns"`, want: 1}, {in: `null`, out: `"0s"`},
		{in: `"abc"`, mistake: `"abc" is no duration; write it like "90s", "10m" or "1h30m"`},
		{in: `""`, mistake: `"" is no duration`}, {in: `5`, mistake: `5 is no duration`}, {in: `1.5`, mistake: `1.5`},
		{in: `"1.5.5s"`, mistake: `"1.5.5s"`}, {in: `"1 h"`, mistake: `"1 h"`}, {in: `"∞"`, mistake: `"∞"`},
		{in: `"9999999999999h"`, mistake: `"9999999999999h" is no duration`},
		{in: `{"a":["b"]}`, mistake: `{"a":["b"]} is no duration`}, {in: `[]`, mistake: `[]`}, {in: `true`, mistake: `true`},
		{in: `"` + strings.Repeat("9", 10<<20) + `"`, mistake: strings.Repeat("9", 39) + "… is no duration"},
	}
	for _, test := range tests {
		name := test.in[:min(len(test.in), 20)]
		var d types.Duration
		if err := json.Unmarshal([]byte(`{"d":`+test.in+`}`), &struct{ D *types.Duration }{&d}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		mistake := ""
		if err := d.Mistake(); err != nil {
			mistake = err.Error()
		}
		if d.Duration != test.want || !strings.Contains(mistake, test.mistake) || (test.mistake == "") != (mistake == "") {
			t.Errorf("%s: %s, mistake %q", name, d.Duration, mistake)
		}
		want := test.out
		if want == "" {
			want = test.in
		}
		if out, err := json.Marshal(d); err != nil || string(out) != want {
			t.Errorf("%s: comes out as %.40s, %v", name, out, err)
		}
	}
	var none *types.Duration
	if err := none.Mistake(); err != nil {
		t.Error(err)
	}
}
