// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
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
	text := "current-context: a\nclusters: []\ncontexts: [&a " + strings.Repeat("x", 50_000) + ", " + strings.Repeat("*a, ", 9_999) + "]\n"
	size := 0
	for _, part := range kubeconfigParts(text) {
		size += len(part)
	}
	if size > 4*len(text) {
		t.Errorf("%d bytes are kept of a text of %d", size, len(text))
	}
}
