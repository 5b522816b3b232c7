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
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/test/audit"
	"github.com/corbel-run/corbel/test/env"
)

// owned returns every object of any type in the whole cluster that has an
// owner label of the operator under test: its name, such as "configmaps ns/a", and
// its uid. Only objects with an owner that contains the given text count, such as "/ns/name/".
func (f *fixture) owned(t testing.TB, owner string) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	config := f.env.Config()
	config.WarningHandler = rest.NoWarnings{} // every type is asked, deprecated ones too
	clients, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	selector := reconcilerName + "/owner-id"
	for _, gvr := range listable(t, discovery.NewDiscoveryClientForConfigOrDie(config)) {
		list, err := clients.Resource(gvr).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			continue // a type that vanished since, or has no objects of its own
		}
		for _, item := range list.Items {
			if !strings.Contains(item.Annotations[reconcilerName+"/owner"], owner) {
				continue
			}
			found[gvr.Resource+" "+strings.TrimPrefix(item.Namespace+"/"+item.Name, "/")] = item.UID
		}
	}
	return found
}

// listable returns every type that can be listed, in its preferred version.
func listable(t testing.TB, client *discovery.DiscoveryClient) []schema.GroupVersionResource {
	t.Helper()
	lists, err := client.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		t.Fatal(err)
	}
	var types []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") {
				types = append(types, gv.WithResource(r.Name))
			}
		}
	}
	return types
}

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
			Name: reconcilerName, Component: schema.GroupResource{Group: "e2e.corbel.run", Resource: "bundles"}, User: f.user(),
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
