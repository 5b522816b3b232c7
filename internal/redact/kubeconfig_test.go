// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/redact"
)

func TestOfAKubeconfigOnlyTheCredentialsAreHidden(t *testing.T) {
	const kubeconfig = `apiVersion: v1
kind: Config
current-context: default
clusters:
- name: default
  cluster: {server: 'https://api.example.com:6443'}
users:
- name: default
  user:
    token: s3cr3t-token-1
- name: another
  user: {client-key-data: c2VjcmV0LWtleQ==}
contexts:
- name: default
  context:
    cluster: default
    user: default
`
	asJSON, err := yaml.YAMLToJSON([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{kubeconfig, string(asJSON)} {
		secrets := redact.New()
		secrets.Add(text)
		const public = "ConfigMap default/a at https://api.example.com:6443 of another, contexts: none"
		if got := secrets.Text(public); got != public {
			t.Errorf("got %s", got)
		}
		for _, secret := range []string{"s3cr3t-token-1", "c2VjcmV0LWtleQ=="} {
			if got := secrets.Text("it is " + secret + " there"); strings.Contains(got, secret) {
				t.Errorf("got %s", got)
			}
		}
	}
}

func TestAliasesOfAKubeconfigAreNotExpanded(t *testing.T) {
	text := "current-context: a\nclusters: []\ncontexts: [&a " + strings.Repeat("x", 50_000) + ", " + strings.Repeat("*a, ", 2_000) + "]\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	redact.New().Add(text)
	runtime.ReadMemStats(&after)
	// Expanded it would be 100 MB, several times.
	if used := after.TotalAlloc - before.TotalAlloc; used > 50<<20 {
		t.Errorf("%d bytes were allocated for a text of %d", used, len(text))
	}
}
