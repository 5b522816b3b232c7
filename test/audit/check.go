// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/test/env"
)

// Options say which requests are checked.
type Options struct {
	// Name is the name of the reconciler: the prefix of its label and its annotation.
	Name string
	// Component is the resource of the components.
	Component schema.GroupResource
	// User is the operator's name in the log. No other client may use it.
	User string
	// Finalizer is what the operator puts on components. Default: Name.
	Finalizer string
	// Impersonated is the user that writes to dependents must act as; empty
	// means that it is not checked.
	Impersonated string
	// AdoptsReleases is set if components may take over what belongs to a Helm release alone, also one of Flux.
	AdoptsReleases bool
	// Inherited are the owners, as group, kind, namespace and name with slashes between them, by the label owner-id that
	// SAP component-operator-runtime gave to their objects.
	Inherited map[string]string
	// AdoptsAlways is set if the default adoption policy is Always.
	AdoptsAlways bool
	// Killed is when the API server was killed, in the order of time. The log may lack
	// the last requests before each of these times, among them deletions.
	Killed []time.Time
	// Restored is when etcd got an earlier state back, in the order of time. What is not written afterwards is not known.
	Restored []time.Time
}

// Violation is a request of the operator that breaks an invariant.
type Violation struct {
	// Rule is the invariant, such as "S1".
	Rule string
	// Index is the request's place in the log.
	Index int
	// Text says what is wrong, and with what request.
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%s, request %d: %s", v.Rule, v.Index, v.Text) }

// Check fails the test for every request of the operator that breaks an
// invariant. The events must go back to the creation of the components. A log in which the
// operator has written no dependent shows nothing, and fails the test, too.
func Check(t testing.TB, events []env.AuditEvent, options Options) {
	t.Helper()
	violations, checked := Violations(events, options)
	if checked == 0 {
		t.Errorf("audit: user %s has written no dependent of %s; is the log recorded with bodies?", options.User, options.Name)
	}
	for i, v := range violations {
		if i == 10 {
			t.Errorf("audit: and %d more", len(violations)-i)
			return
		}
		t.Errorf("audit: %s", v)
	}
}

// Violations returns what Check complains about, and how many requests on
// dependents were checked.
func Violations(events []env.AuditEvent, options Options) (violations []Violation, checked int) {
	options.Finalizer = cmp.Or(options.Finalizer, options.Name)
	r := &replay{options: options, components: map[string]*component{}, known: map[string]bool{}, objects: map[key]*object{}, kinds: map[schema.GroupResource]string{}, ids: maps.Clone(options.Inherited), incomplete: incomplete(events, options)}
	if r.ids == nil {
		r.ids = map[string]string{}
	}
	killed, restored := options.Killed, options.Restored
	for i, e := range events {
		r.index, r.event = i, e
		for len(killed) > 0 && e.Time.After(killed[0]) {
			r.makeUnsure(func(key) bool { return true })
			killed = killed[1:]
		}
		for len(restored) > 0 && e.Time.After(restored[0]) {
			r.components, r.known, r.objects = map[string]*component{}, map[string]bool{}, map[key]*object{}
			restored = restored[1:]
		}
		if isRead(e.Verb) || strings.Contains(e.URI, "dryRun=") || e.Code >= 300 && e.Code < 499 {
			continue
		}
		switch {
		case e.Code < 200 || e.Code > 299:
			r.unanswered()
		case e.Group == options.Component.Group && e.Resource == options.Component.Resource:
			r.ofComponent()
		case !slices.Contains(unwatched, schema.GroupResource{Group: e.Group, Resource: e.Resource}):
			r.ofObject()
		}
	}
	return r.violations, r.checked
}

// unwatched are the resources that are no dependents.
var unwatched = []schema.GroupResource{
	{Resource: "events"},
	{Group: "events.k8s.io", Resource: "events"},
	{Group: "coordination.k8s.io", Resource: "leases"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}

func isRead(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

// replay is the state of the cluster after the requests of the log so far.
type replay struct {
	options    Options
	index      int
	event      env.AuditEvent
	components map[string]*component // by namespace/name
	known      map[string]bool       // every component that there ever was
	objects    map[key]*object
	kinds      map[schema.GroupResource]string
	ids        map[string]string // the owner that has the label
	incomplete map[int]bool      // writes to components after which the log lacks one
	violations []Violation
	checked    int
}

func (r *replay) violate(rule, format string, args ...any) {
	e := r.event
	where := strings.Trim(e.Resource+"/"+e.Subresource, "/") + " " + strings.Trim(e.Namespace+"/"+e.Name, "/")
	r.violations = append(r.violations, Violation{
		Rule: rule, Index: r.index, Text: fmt.Sprintf("%s %s: %s", e.Verb, where, fmt.Sprintf(format, args...)),
	})
}

// byOperator reports whether the request is checked.
func (r *replay) byOperator() bool { return r.event.User == r.options.User }
