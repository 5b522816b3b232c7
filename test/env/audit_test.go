// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseAuditLog(t *testing.T) {
	const watch = `"verb":"watch","requestURI":"/api/v1/pods?watch=true","user":{"username":"u"},"responseStatus":{"code":200}}` + "\n"
	for _, test := range []struct {
		name, log string
		want      []AuditEvent
		wantErr   bool
	}{
		{name: "an empty log"},
		{
			name: "a request with all details",
			log: `{"stage":"ResponseComplete","requestURI":"/u","verb":"update","user":{"username":"a"},"impersonatedUser":{"username":"b"},` +
				`"userAgent":"g","objectRef":{"resource":"deployments","namespace":"n","name":"x","apiGroup":"apps","subresource":"scale"},` +
				`"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z"}` + "\n",
			want: []AuditEvent{{
				Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), User: "a", Impersonated: "b", UserAgent: "g", Verb: "update", URI: "/u",
				Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "n", Name: "x", Code: 409,
			}},
		},
		{
			name: "a watch counts when it starts, not when it ends",
			log:  `{"stage":"ResponseStarted",` + watch + `{"stage":"ResponseComplete",` + watch,
			want: []AuditEvent{{User: "u", Verb: "watch", URI: "/api/v1/pods?watch=true", Code: 200}},
		},
		{
			name: "our own markers are left out",
			log:  `{"stage":"ResponseComplete","verb":"get","requestURI":"/version?` + auditMarker + `=x"}` + "\n",
		},
		{name: "a line that is being written is left out", log: `{"stage":"Respon`},
		{name: "a line that is no event is an error", log: "nonsense\n", wantErr: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseAuditLog([]byte(test.log))
			if (err != nil) != test.wantErr {
				t.Errorf("the error is %v, want one: %t", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
