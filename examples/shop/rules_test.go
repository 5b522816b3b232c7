// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/rbacrules"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/env"
)

// right is a verb on a resource in the namespace of the operator or anywhere.
type right struct{ group, resource, verb string }

// unused are the rules that the life of a Shop may not need, and why the operator has them.
var unused = map[string]string{
	"list pods.":   "pods explain a workload that fails or is not ready within the timeout",
	"list events.": "events explain a workload without pods",
	"list apiservices.apiregistration.k8s.io": "they are read if the type of an object is not served any more when it is deleted",
}

func TestTheOperatorRunsWithTheRulesThatAreGeneratedForItsChart(t *testing.T) {
	b := openBed(t)
	kinds, unknown, err := rbacrules.ScanChart(chart, "chart")
	b.check(err)
	if len(unknown) > 0 {
		t.Errorf("unknown: %q", unknown)
	}
	operator := rbacrules.Operator{Account: "generated-" + b.namespace, Group: shopv1alpha1.GroupVersion.Group, Resource: "shops", Namespace: b.namespace}
	text, err := operator.YAML(kinds)
	b.check(err)
	var granted []rbacv1.PolicyRule
	for reader := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := reader.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		b.check(b.client.Create(b.ctx, object))
		if object.GetNamespace() == "" {
			b.Cleanup(func() { b.check(b.client.Delete(b.ctx, object)) })
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if strings.HasSuffix(object.GetKind(), "Role") {
			b.check(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
			granted = append(granted, role.Rules...)
		}
	}

	t.Setenv("POD_NAMESPACE", b.namespace)
	e := env.Shared(t)
	from, err := e.AuditPosition(b.ctx)
	b.check(err)
	user := "system:serviceaccount:" + b.namespace + ":" + operator.Account
	config, err := e.ConfigFor(user)
	b.check(err)
	lock, err := component.NewLeaderLock(config, b.namespace, name)
	b.check(err)
	b.start(user, ctrl.Options{LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true})
	b.check(b.client.Create(b.ctx, b.shop()))
	b.untilReady()
	b.change(func(s *shopv1alpha1.ShopSpec) { s.Replicas = 3; s.Greeting = "Closed" })
	b.untilReady()
	b.delete()

	events, err := e.AuditEventsSince(b.ctx, from, user)
	b.check(err)
	used := map[right]bool{}
	for _, event := range events {
		if event.User != user {
			continue
		}
		if event.Code == http.StatusForbidden {
			t.Errorf("the server answered 403 to %s %s", event.Verb, event.URI)
		}
		used[right{event.Group, strings.TrimSuffix(event.Resource+"/"+event.Subresource, "/"), event.Verb}] = true
	}
	if len(used) == 0 {
		t.Fatal("the audit log has no request of the operator")
	}
	for _, rule := range granted {
		for _, resource := range rule.Resources {
			r := fmt.Sprintf("%s %s.%s", strings.Join(rule.Verbs, ","), resource, rule.APIGroups[0])
			idle := !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return used[right{rule.APIGroups[0], resource, verb}] })
			if idle && unused[r] == "" {
				t.Errorf("no request used the rule %s", r)
			}
		}
	}
}
