// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/test/audit"
	"github.com/corbel-run/corbel/test/env"
)

func names(objects map[string]types.UID) []string { return slices.Sorted(maps.Keys(objects)) }

// user is the operator's name in the audit log.
func (f *fixture) user() string { return "operator-" + f.namespace }

// audit checks, when the test has ended, every write of the operators that it has
// started.
func (f *fixture) audit(t testing.TB) {
	t.Helper()
	before, err := f.env.AuditPosition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		events, err := f.env.AuditEventsSince(context.Background(), before, f.namespace, letters(f.namespace))
		if err != nil {
			t.Error(err)
			return
		}
		about := slices.DeleteFunc(events, func(e env.AuditEvent) bool { return !f.concerns(e) })
		options := audit.Options{
			Name: reconcilerName, Component: schema.GroupResource{Group: "test.corbel.run", Resource: "widgets"}, User: f.user(),
			AdoptsReleases: f.adoptsReleases,
		}
		if !f.mayBeIdle {
			audit.Check(t, about, options)
			return
		}
		violations, _ := audit.Violations(about, options)
		for _, v := range violations {
			t.Errorf("audit: %s", v)
		}
	})
}

// concerns reports whether a request is about the fixture's objects; others are
// made by tests that go on at the same time.
func (f *fixture) concerns(e env.AuditEvent) bool {
	// The command changes objects without a namespace, too; the annotations of a release name it.
	ours := e.User == f.user() || f.adoptsReleases && bytes.Contains(e.Answered, []byte(f.namespace)) || strings.Contains(e.URI, f.namespace) || strings.Contains(e.URI, letters(f.namespace))
	if !ours && !bytes.Contains(e.Answered, []byte(letters(f.namespace))) {
		return false
	}
	name := writtenName(e.Answered)
	return !f.late[name] && (ours || strings.Contains(name, letters(f.namespace)))
}

// writtenName is the name of the object in a body, like that of nameOf.
func writtenName(body []byte) string {
	object := &metav1.PartialObjectMetadata{}
	if len(body) == 0 || json.Unmarshal(body, object) != nil {
		return ""
	}
	return nameOf(object)
}
