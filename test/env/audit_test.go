// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAuditEventsHoldEveryRequest(t *testing.T) {
	e := Shared(t)
	config, err := e.ConfigFor("auditor", admins)
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent = "audit-test"
	c := newClient(t, config)
	object := configMap("audited")
	for _, err := range []error{
		c.Create(t.Context(), object),
		c.Get(t.Context(), client.ObjectKeyFromObject(object), object),
		c.Delete(t.Context(), object),
		client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(object), object)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	events, err := e.AuditEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type request struct {
		Verb, Name string
		Code       int
	}
	var got []request
	for _, event := range events {
		if event.UserAgent == "audit-test" && event.Resource == "configmaps" && event.User == "auditor" {
			got = append(got, request{event.Verb, event.Name, event.Code})
		}
	}
	want := []request{{"create", "audited", 201}, {"get", "audited", 200}, {"delete", "audited", 200}, {"get", "audited", 404}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAuditEventsSinceAPositionAreThoseAboutATextAfterIt(t *testing.T) {
	e := Shared(t)
	c := newClient(t, e.Config())
	create := func(name string, data map[string]string) {
		t.Helper()
		object := configMap(name)
		object.Data = data
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	create("since-before", nil)
	position, err := e.AuditPosition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	create("since-named", nil)
	create("another", map[string]string{"key": "since-in-its-body"})
	create("of-another-user", nil)
	for range 2 { // nothing is lost by reading it
		events, err := e.AuditEventsSince(t.Context(), position, "since-")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, event := range events {
			got = append(got, event.Verb+" "+event.Name)
		}
		if diff := cmp.Diff([]string{"create since-named", "create another"}, got); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}

func TestManyReadTheAuditLogAtOnce(t *testing.T) {
	e := Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	errs := make(chan error)
	const readers = 8
	for range readers {
		go func() {
			var err error
			for range 10 {
				position, failed := e.AuditPosition(ctx)
				_, alsoFailed := e.AuditEvents(ctx)
				_, sinceFailed := e.AuditEventsSince(ctx, position, "version")
				err = errors.Join(err, failed, alsoFailed, sinceFailed)
			}
			errs <- err
		}()
	}
	for range readers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestAuditEventsHoldTheBodiesOfWrites(t *testing.T) {
	e := Shared(t)
	c := newClient(t, e.Config())
	object := configMap("audited-whole")
	object.Data = map[string]string{"key": "sent"}
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), object, client.Preconditions{UID: &object.UID}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	// The second call returns the earlier events, too.
	for range 2 {
		events, err := e.AuditEvents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		clear(seen)
		for _, event := range events {
			if event.Name == object.Name && event.Verb == "create" {
				seen["create"] = strings.Contains(string(event.Sent), `"sent"`) && strings.Contains(string(event.Answered), string(object.UID))
			}
			if event.Name == object.Name && event.Verb == "delete" {
				seen["delete"] = strings.Contains(string(event.Sent), `"uid":"`+string(object.UID)+`"`)
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"create": true, "delete": true}, seen); diff != "" {
		t.Errorf("writes with their bodies (-want +got):\n%s", diff)
	}
}

func TestAuditEventsNeedTheOption(t *testing.T) {
	if _, err := new(Environment).AuditEvents(t.Context()); err == nil {
		t.Error("an environment without an audit log returned events")
	}
	if _, err := new(Environment).AuditPosition(t.Context()); err == nil {
		t.Error("an environment without an audit log returned a position")
	}
}

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
