// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/check"
)

func TestWhichRightsARequestNeeds(t *testing.T) {
	for _, tc := range []struct {
		method, url string
		code        int
		background  bool
		write       bool
		want        string // verbs, the group with the resource, the namespace and the name
	}{
		{http.MethodGet, "/api", 200, true, false, "list ./"},
		{http.MethodGet, "/apis/apps/v1", 200, true, false, "list ./"},
		{http.MethodGet, "/api/v1/namespaces/shop", 200, false, false, "get namespaces./shop"},
		{http.MethodGet, "/api/v1/namespaces/shop/pods", 200, false, false, "list pods.shop/"},
		{http.MethodGet, "/apis/apps/v1/deployments?limit=500&resourceVersion=0", 200, true, false, "list deployments.apps/"},
		{http.MethodGet, "/apis/apps/v1/deployments?watch=true&sendInitialEvents=true", 200, true, false, "watch,list deployments.apps/"},
		{http.MethodGet, "/apis/apps/v1/deployments?watch=1", 200, true, false, "watch deployments.apps/"},
		{http.MethodPost, "/api/v1/namespaces/shop/configmaps", 201, false, true, "create configmaps.shop/"},
		{http.MethodPost, "/api/v1/namespaces/shop/configmaps?dryRun=All", 201, false, false, "create configmaps.shop/"},
		{http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web", 201, false, true, "patch,create deployments.apps.shop/web"},
		{http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web/status", 200, false, true, "patch deployments/status.apps.shop/web"},
		{http.MethodPut, "/api/v1/namespaces/shop/finalize", 200, false, true, "update namespaces/finalize./shop"},
		{http.MethodDelete, "/api/v1/namespaces/shop/configmaps", 200, false, true, "deletecollection configmaps.shop/"},
		{http.MethodDelete, "/api/v1/nodes/one", 200, false, true, "delete nodes./one"},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/shop/events", 201, true, false, "create events.events.k8s.io.shop/"},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/shop/leases/leader", 200, true, false, "update leases.coordination.k8s.io.shop/leader"},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", 201, false, false, "create selfsubjectrulesreviews.authorization.k8s.io/"},
	} {
		q := parse(httptest.NewRequest(tc.method, tc.url, nil))
		q.code = tc.code
		parts := []string{q.resourceOfRule()}
		for _, part := range []string{q.resource.Group, q.namespace} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		place := strings.Join(parts, ".")
		if len(parts) == 1 && (q.name != "" || q.resource.Resource == "") {
			place += "."
		}
		if got := strings.Join(q.verbs(), ",") + " " + place + "/" + q.name; got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.method, tc.url, got, tc.want)
		}
		if q.isBackground() != tc.background || q.isWrite() != tc.write {
			t.Errorf("%s %s: background %t, write %t", tc.method, tc.url, q.isBackground(), q.isWrite())
		}
	}
}

func TestUnusedRulesAreThoseThatNoRequestNeeds(t *testing.T) {
	requests := []request{
		parse(httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/shop/configmaps/a", nil)),
		parse(httptest.NewRequest(http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web/status", nil)),
	}
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	named := rule("", "configmaps", "get")
	named.ResourceNames = []string{"b"}
	got := unusedRules([]rbacv1.PolicyRule{
		rule("", "configmaps", "get", "list"), named, rule("*", "*/status", "patch"), rule("apps", "deployments", "patch"),
		rule("*", "*", "*"), rule("rbac.authorization.k8s.io", "roles", "bind", "escalate"),
	}, requests)
	want := []rbacv1.PolicyRule{rule("", "configmaps", "list"), named, rule("apps", "deployments", "patch")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unused rules (-want +got):\n%s", diff)
	}
}

func TestCrashesAreBeforeAndAfterWritesAlsoIfFewAreRun(t *testing.T) {
	for every, want := range map[int]string{
		0: "before 1, after 1, before 2, after 2, before 3, after 3, before 4, after 4",
		1: "before 1, after 1, before 2, after 2, before 3, after 3, before 4, after 4",
		2: "before 1, after 2, before 3, after 4",
		3: "before 1, after 2, before 4",
		4: "before 1, after 3",
		9: "before 1",
	} {
		var got []string
		for _, p := range oneIn(every, pointsOf(4)) {
			got = append(got, strings.Replace(p.String(), "write ", "", 1))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("one in %d: got %s, want %s", every, got, want)
		}
	}
}

// The names of two installations are the same, although each has a namespace of its own.
func TestTheNamespaceOfACaseIsNotInTheNamesOfItsObjects(t *testing.T) {
	i := &Installed[component.Component]{Namespace: "case-1"}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	for want, o := range map[string]object{
		"ConfigMap main":                        {kind, "case-1", "main"},
		"ConfigMap main-$NAMESPACE":             {kind, "", "main-case-1"},
		"ConfigMap kube-system/main-$NAMESPACE": {kind, "kube-system", "main-case-1"},
		"ConfigMap $NAMESPACE-jobs/main":        {kind, "case-1-jobs", "main"},
	} {
		if got := i.nameOf(o); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestChecksumsInAnnotationsAreNotCompared(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	withDigest := func(digest string) map[string]any {
		return map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"checksum/secret": digest, "port": "8080"}},
			"data":     map[string]any{"digest": "0a0b"},
		}}}
	}
	got := withDigest(digest)
	hideChecksums(got)
	if diff := cmp.Diff(withDigest("a checksum that is not compared"), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCertificatesAreNotCompared(t *testing.T) {
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("something")}))
	content := func(bundle, data string) any {
		return map[string]any{
			"webhooks": []any{map[string]any{"clientConfig": map[string]any{"caBundle": bundle}, "name": "BEGIN", "replicas": int64(1)}},
			"data":     map[string]any{"ca.crt": data, "text": "aGVsbG8="},
		}
	}
	const hidden = "a certificate or key that is not compared"
	got := hideCertificates(content(base64.StdEncoding.EncodeToString([]byte(certificate)), "# a comment\n"+certificate))
	if diff := cmp.Diff(content(hidden, hidden), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARefusalThatTheOperatorDoesWithoutIsNotReported(t *testing.T) {
	answered := func(url string) request {
		q := parse(httptest.NewRequest(http.MethodGet, url, nil))
		q.code = http.StatusForbidden
		return q
	}
	const webhooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	check.NoError(t, refused([]request{answered(webhooks)}))
	for _, url := range []string{webhooks + "?resourceVersion=0", webhooks + "?watch=true", webhooks + "/a", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"} {
		check.Fails(t, refused([]request{answered(url)}), "is forbidden: the operator needs")
	}
}
