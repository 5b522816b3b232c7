// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmrecord

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/test/check"
)

func TestARecordIsReadAsItWasMade(t *testing.T) {
	object := func(kind, name string, annotations map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		o.SetName(name)
		o.SetAnnotations(annotations)
		return o
	}
	made := &helmrelease.Release{
		Reference: helmrelease.Reference{Namespace: "market", Name: "corner", Revision: 8}, Status: StatusPending, Chart: "shop", ChartVersion: "1.0.0", AppVersion: "2",
		DeployedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Values: map[string]any{"replicas": int64(9007199254740993), "image": "a"},
		Objects:     []*unstructured.Unstructured{object("ConfigMap", "a", nil), object("Service", "b", nil)},
		HookObjects: []*unstructured.Unstructured{object("Pod", "c", map[string]string{HookKey: "pre-delete, post-delete", hookWeight: "-5"})},
	}
	secret, err := Record(made, map[string]any{"tls": map[string]any{"enabled": false}}, "why", func(o *unstructured.Unstructured) string { return "shop/templates/" + o.GetName() + ".yaml" })
	check.NoError(t, err)
	read, err := helmrelease.Decode(secret.Data[helmrelease.Entry])
	if diff := cmp.Diff(made, read); diff != "" || err != nil {
		t.Errorf("%v, -made +read:\n%s", err, diff)
	}
	labels := map[string]string{"owner": "helm", "name": "corner", "version": "8", "status": "pending-upgrade", "createdAt": "1767323045"}
	if diff := cmp.Diff(labels, secret.Labels); diff != "" || secret.Type != helmrelease.SecretType || secret.Name != "sh.helm.release.v1.corner.v8" {
		t.Errorf("%s of type %s, labels -want +got:\n%s", secret.Name, secret.Type, diff)
	}
	content, err := helmrelease.Unpack(secret.Data[helmrelease.Entry])
	check.NoError(t, err)
	check.Contains(t, string(content), `"events":["pre-delete","post-delete"]`, `"weight":-5`, `"delete_policies":["before-hook-creation"]`, `# Source: shop/templates/a.yaml`, `"description":"why"`, `"values":{"tls":{"enabled":false}}`)

	check.NoError(t, SetStatus(secret, helmrelease.StatusDeployed))
	made.Status = helmrelease.StatusDeployed
	read, err = helmrelease.Decode(secret.Data[helmrelease.Entry])
	if diff := cmp.Diff(made, read); diff != "" || err != nil || secret.Labels["status"] != helmrelease.StatusDeployed {
		t.Errorf("%v, %v, -made +read:\n%s", err, secret.Labels, diff)
	}
	for _, name := range []string{"", "Corner", strings.Repeat("a", 54)} {
		if CheckName(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
