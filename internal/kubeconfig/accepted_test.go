// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/kubeconfig"
)

func TestGoodKubeconfigsAreUnderstood(t *testing.T) {
	certificate, key := certificates()
	asJSON, err := yaml.YAMLToJSON([]byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	var indented strings.Builder
	encoder := json.NewEncoder(&indented)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(json.RawMessage(asJSON)); err != nil {
		t.Fatal(err)
	}
	simple := kubeconfig.Access{Server: "https://api.example.com:6443", Token: canary}
	changed := func(change func(*kubeconfig.Access)) kubeconfig.Access {
		access := simple
		change(&access)
		return access
	}
	tests := []struct {
		name, text string
		want       kubeconfig.Access
	}{
		{"plain", plain, simple},
		{"JSON", string(asJSON), simple},
		{"JSON with tabs", indented.String(), simple},
		{"with a byte order mark", "\xef\xbb\xbf" + plain, simple},
		{"CRLF", strings.ReplaceAll(plain, "\n", "\r\n"), simple},
		{"comments", "# mine\n---\n" + plain + "...\n", simple},
		{"without kind and version", with(t, "apiVersion: v1\nkind: Config\n", ""), simple},
		{"what says nothing", with(t, token, token+"\n    username: ''\n    exec: null\n    as: ~", server, server+"\n    proxy-url: \"\"\n    insecure-skip-tls-verify: false"), simple},
		{"extensions", with(t, server, server+"\n    extensions: [{name: x, extension: {any: [thing, 1]}}]") + "preferences: {colors: true}\nextensions: [{name: more, extension: z}]\n", simple},
		{"a namespace", with(t, "    user: me", "    user: me\n    namespace: other"), simple},
		{"K24 several contexts", with(t,
			"contexts:\n", "contexts:\n- {name: other, context: {cluster: elsewhere, user: you}}\n",
			"clusters:\n", "clusters:\n- {name: elsewhere, cluster: {server: 'https://b.example.com'}}\n",
			"users:\n", "users:\n- {name: you, user: {token: x}}\n"), simple},
		{"a path", with(t, "6443", "6443/k8s/clusters/c-1"), changed(func(a *kubeconfig.Access) { a.Server += "/k8s/clusters/c-1" })},
		{"an IPv6 address", with(t, "api.example.com", "'https://[2001:db8::1]", "server: https://'", "server: '", "6443", "6443'"), changed(func(a *kubeconfig.Access) { a.Server = "https://[2001:db8::1]:6443" })},
		{"another name", cluster(t, "tls-server-name: other.example.com", "disable-compression: true"),
			changed(func(a *kubeconfig.Access) { a.ServerName, a.DisableCompression = "other.example.com", true })},
		{"certificates", with(t, token, "client-certificate-data: "+certificate+"\n    client-key-data: "+key, server, server+"\n    certificate-authority-data: "+certificate),
			kubeconfig.Access{Server: simple.Server, Authorities: decoded(t, certificate), Certificate: decoded(t, certificate), Key: decoded(t, key)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := kubeconfig.Parse([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// An ordinary client reaches the same server with the file.
			config, err := clientcmd.RESTConfigFromKubeConfig([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			theirs := kubeconfig.Access{
				Server: config.Host, ServerName: config.ServerName, Authorities: config.CAData,
				Certificate: config.CertData, Key: config.KeyData, Token: config.BearerToken, DisableCompression: config.DisableCompression,
			}
			if diff := cmp.Diff(theirs, got); diff != "" {
				t.Errorf("an ordinary client understands something else (-ordinary +ours):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	var content []byte
	if err := json.Unmarshal([]byte(`"`+text+`"`), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// Opening a pipe without a writer would never return.
func TestNoFileIsOpened(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		user(t, "tokenFile: "+pipe), user(t, "client-certificate: "+pipe), user(t, "client-key: "+pipe),
		cluster(t, "certificate-authority: "+pipe), user(t, "exec: {command: "+pipe+"}"),
	} {
		_, err := kubeconfig.Parse([]byte(text))
		if refused, ok := errors.AsType[*kubeconfig.Error](err); !ok || len(refused.Problems) != 1 {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	certificate, key := certificates()
	for _, text := range []string{
		plain, "{}", cluster(f, "proxy-url: x", "certificate-authority-data: "+certificate), user(f, "exec: {a: [b]}", "as: x"),
		user(f, "client-certificate-data: "+certificate, "client-key-data: "+key), "a: &a [*a]", "\xff\xfe", strings.ReplaceAll(plain, "\n", "\r\n"),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		access, err := kubeconfig.Parse([]byte(text))
		if err != nil {
			if _, ok := errors.AsType[*kubeconfig.Error](err); !ok || strings.Contains(err.Error(), canary) {
				t.Errorf("error %v", err)
			}
			return
		}
		if !strings.HasPrefix(strings.ToLower(access.Server), "https://") || access.Token == "" && len(access.Key) == 0 {
			t.Errorf("accepted %+v", access)
		}
	})
}
