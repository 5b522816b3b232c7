// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/check"
)

var lifeStories = []story{
	{"install, change, repair and delete", life},
	{"Jobs before, after and at the deletion", hooks},
	{"crashes at the writes of the operator", func(t testing.TB, c *cluster) {
		c.operator().TestCrashes(t, application().component(), content{"settings": configMap("settings", "2"), "account": ""}.with, *every)
	}},
}

// application is a workload with configuration.
func application() content {
	return content{
		"settings": configMap("settings", "1"),
		"secret":   manifest("v1", "Secret", "key", "stringData: {key: secret}"),
		"account":  manifest("v1", "ServiceAccount", "web", ""),
		"service":  manifest("v1", "Service", "web", "spec: {selector: {app: web}, ports: [{port: 80}]}"),
		"web": manifest("apps/v1", "Deployment", "web", fmt.Sprintf("spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, "+
			"spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: %q, command: [sleep, '86400']}]}}}", *image), "apply-order", "1"),
	}
}

func life(t testing.TB, c *cluster) {
	s := install(t, c.operator(), application().component())
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: s.Namespace, Name: "web"}
	check.NoError(t, c.client.Get(t.Context(), key, deployment))
	check.SameNamed(t, "ready replicas of a component that is Ready", 1, deployment.Status.ReadyReplicas)

	s.Edit(t, content{"settings": configMap("settings", "2"), "account": ""}.with)
	s.has("settings", "2")
	check.SameNamed(t, "the ServiceAccount is gone", true, isGone(c.client.Get(t.Context(), key, &corev1.ServiceAccount{})))

	s.interfere("settings", "version", "theirs")
	s.has("settings", "2")
	check.NoError(t, c.client.Delete(t.Context(), s.get("settings")))
	s.has("settings", "2")
	s.Delete(t)
}

func hooks(t testing.TB, c *cluster) {
	before := func(succeeds bool) string { return job("before", succeeds, "apply-order", "-1", "purge-order", "-1") }
	s := install(t, c.operator(), content{
		"before": before(true), "server": configMap("server", "1"), "after": job("after", true, "apply-order", "1", "purge-order", "1"),
		"last": job("last", true, "run-on", "pre-delete"),
	}.component())
	completed := func(jobs ...string) {
		for _, name := range jobs {
			until(t, "Job "+name+" has an event of its completion", func() error {
				events := &corev1.EventList{}
				err := c.client.List(t.Context(), events, client.InNamespace(s.Namespace), client.MatchingFields{"involvedObject.name": name, "reason": "Completed"})
				if err == nil && len(events.Items) == 0 {
					err = errors.New("there is none")
				}
				return err
			})
		}
	}
	completed("before", "after")
	s.has("server", "1")
	s.propose(content{"before": before(false), "server": configMap("server", "2")}.with)
	s.awaitReason(vocabulary.ReasonObjectFailed, "Job "+s.Namespace+"/before")
	s.has("server", "1")
	s.Edit(t, content{"before": before(true)}.with)
	s.has("server", "2")
	s.Delete(t)
	completed("last")
}

var rightsStories = []story{
	{"an operator without a right goes on when it has the right", rights},
	{"a service account writes the objects", impersonation},
}

// rights lets the operator act as a user without the right to Services.
func rights(t testing.TB, c *cluster) {
	name := c.prefix + "-rights"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
		{APIGroups: []string{group}, Resources: []string{"widgets/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: allVerbs},
	}}
	check.NoError(t, c.client.Create(t.Context(), role))
	check.NoError(t, c.client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	o := c.operator()
	o.As = &rest.ImpersonationConfig{UserName: name}
	s := install(t, o, content{"some": configMap("some", "1")}.component())
	s.desireService("the operator", role, &role.Rules)
}

// impersonation lets a service account without the right to Services write the objects of an operator that has all rights.
func impersonation(t testing.TB, c *cluster) {
	named := metav1.ObjectMeta{Name: "writer"} // OpenShift has a deployer in each namespace
	o := c.operator()
	role := &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: allVerbs}, {APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}}
	o.Prerequisites = []client.Object{
		&corev1.ServiceAccount{ObjectMeta: named}, role,
		&rbacv1.RoleBinding{ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: named.Name}}},
	}
	w := content{"some": configMap("some", "1")}.component()
	w.Spec.ServiceAccountName = named.Name
	s := install(t, o, w)
	role.Namespace = s.Namespace
	s.desireService("system:serviceaccount:"+s.Namespace+":"+named.Name, role, &role.Rules)
}

// desireService desires a Service. The role of the user who writes it has no right to Services until the user lacks it.
func (s scene) desireService(user string, role client.Object, rules *[]rbacv1.PolicyRule) {
	s.propose(content{"service": application()["service"]}.with)
	s.awaitReason(vocabulary.ReasonForbidden, user+" lacks rights", "services")
	*rules = append(*rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: allVerbs})
	check.NoError(s.t, s.Client.Update(s.t.Context(), role))
	s.awaitReason(vocabulary.ReasonReady)
	s.Delete(s.t)
}
