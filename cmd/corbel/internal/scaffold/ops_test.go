// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"testing"
)

// TestAProjectHasTheFilesForItsOperation looks for the files that test/ops tests.
func TestAProjectHasTheFilesForItsOperation(t *testing.T) {
	o := Options{Name: "shop-operator", Kind: "Shop", Group: "shop.example.com", Form: FormGo}
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	files, err := contents{Options: o}.files()
	if err != nil {
		t.Fatal(err)
	}
	for name, about := range map[string]string{
		"ops/alerts.yaml": `controller="shop.shop.example.com"`, "ops/dashboard.json": "shop.shop.example.com",
		"ops/argocd-health.lua": "Progressing", "ops/kube-state-metrics.yaml": "kind: Shop",
	} {
		if content := files[name]; !bytes.Contains(content, []byte(about)) || bytes.Contains(content, []byte("[[")) {
			t.Errorf("%s:\n%s", name, content)
		}
	}
}
