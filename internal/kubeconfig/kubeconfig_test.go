// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/kubeconfig"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/check"
)

// canary is in all credentials of the tests and must be in no error.
const canary = "canary-0123456789"

// plain is a kubeconfig that is right; the tests change it.
const plain = `apiVersion: v1
kind: Config
current-context: main
clusters:
- name: there
  cluster:
    server: https://api.example.com:6443
users:
- name: me
  user:
    token: ` + canary + `
contexts:
- name: main
  context:
    cluster: there
    user: me
`

// with returns the plain kubeconfig with text replaced.
func with(t testing.TB, replacements ...string) string {
	t.Helper()
	text := plain
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			t.Fatalf("%q is not in the kubeconfig", replacements[i])
		}
		text = strings.Replace(text, replacements[i], replacements[i+1], 1)
	}
	return text
}

const (
	server = "server: https://api.example.com:6443"
	token  = "token: " + canary
)

// cluster and user add fields.
func cluster(t testing.TB, lines ...string) string {
	t.Helper()
	return with(t, server, strings.Join(append([]string{server}, lines...), "\n    "))
}

func user(t testing.TB, lines ...string) string {
	t.Helper()
	return with(t, token, strings.Join(append([]string{token}, lines...), "\n    "))
}

var certificates = sync.OnceValues(func() (certificate, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		panic(err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", privateDER)
})

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestGoodKubeconfigsAreUnderstood(t *testing.T) {
	certificate, key := certificates()
	asJSON := check.Must(yaml.YAMLToJSON([]byte(plain)))(t)
	var indented strings.Builder
	encoder := json.NewEncoder(&indented)
	encoder.SetIndent("", "\t")
	check.NoError(t, encoder.Encode(json.RawMessage(asJSON)))
	simple := kubeconfig.Access{Server: "https://api.example.com:6443", Token: canary}
	changed := func(change func(*kubeconfig.Access)) kubeconfig.Access {
		access := simple
		change(&access)
		return access
	}
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			got := check.Must(kubeconfig.Parse([]byte(test.text)))(t)
			check.Equal(t, test.want, got)
			// An ordinary client reaches the same server with the file.
			config := check.Must(clientcmd.RESTConfigFromKubeConfig([]byte(test.text)))(t)
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
	check.NoError(t, json.Unmarshal([]byte(`"`+text+`"`), &content))
	return content
}

// Opening a pipe without a writer would never return.
func TestNoFileIsOpened(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	check.NoError(t, syscall.Mkfifo(pipe, 0o600))
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

func utf16Of(text string, byteOrderMark bool) string {
	var b strings.Builder
	if byteOrderMark {
		b.WriteString("\xff\xfe")
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		b.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return b.String()
}

// The numbers are those of the list of bad inputs that the tests follow.
func TestBadKubeconfigsAreRefused(t *testing.T) {
	certificate, key := certificates()
	const (
		empty     = vocabulary.ReasonKubeconfigEmpty
		tooLarge  = vocabulary.ReasonKubeconfigTooLarge
		invalid   = vocabulary.ReasonKubeconfigInvalid
		insecure  = vocabulary.ReasonKubeconfigInsecure
		forbidden = vocabulary.ReasonKubeconfigForbiddenField
	)
	for _, test := range []struct {
		name, text, reason, message string
	}{
		{"K01 nothing", "", empty, "kubeconfig: is empty"},
		{"K02 white space", " \n\t\r\n", empty, ""},
		{"only a comment", "# nothing\n", empty, ""},
		{"only a byte order mark", "\xef\xbb\xbf", empty, ""},
		{"K03 an empty mapping", "{}", invalid, "kubeconfig: clusters: no cluster is defined; current-context: is missing"},
		{"null", "null", invalid, "clusters: no cluster is defined"},
		{"an empty document", "---\n", invalid, "clusters: no cluster is defined"},
		{"K04 garbage", "what: [is: this", invalid, "is neither YAML nor JSON: there is a mistake near line 1"},
		{"a string", "kubeconfig", invalid, "must be a mapping of fields"},
		{"a list", "[1, 2]", invalid, "must be a mapping of fields"},
		{"a cut file", plain[:len(plain)/2], invalid, ""},
		{"K06 a program", user(t, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, "+canary+"]}"), forbidden, "kubeconfig: users[0].user.exec: is not allowed, because it runs a program"},
		{"K07 the operator itself", user(t, "exec: {command: /proc/self/exe, env: [{name: A, value: "+canary+"}]}"), forbidden, "users[0].user.exec:"},
		{"an empty program", user(t, "exec: {}"), forbidden, "users[0].user.exec:"},
		{"K08 an auth provider", user(t, "auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}"), forbidden, "users[0].user.auth-provider:"},
		{"K09 a token file", with(t, token, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), forbidden, "users[0].user.tokenFile:"},
		{"K10 a token and a token file", user(t, "tokenFile: /etc/token"), forbidden, "users[0].user.tokenFile:"},
		{"K11 a certificate file", user(t, "client-certificate: /etc/tls.crt"), forbidden, "users[0].user.client-certificate: is not allowed, because it names a file"},
		{"K12 a key file", user(t, "client-key: /etc/tls.key"), forbidden, "users[0].user.client-key:"},
		{"K13 an authority file", cluster(t, "certificate-authority: /etc/passwd"), forbidden, "clusters[0].cluster.certificate-authority:"},
		{"K14 a proxy", cluster(t, "proxy-url: http://"+canary+"@proxy"), forbidden, "clusters[0].cluster.proxy-url:"},
		{"K15 no verification", cluster(t, "insecure-skip-tls-verify: true"), insecure, "clusters[0].cluster.insecure-skip-tls-verify: must not be true"},
		{"verification neither on nor off", cluster(t, "insecure-skip-tls-verify: \"true\""), invalid, "must be true or false"},
		{"K16 no encryption", with(t, "https://", "http://"), insecure, "clusters[0].cluster.server: must start with https://"},
		{"no scheme", with(t, "https://", ""), invalid, "clusters[0].cluster.server: must start with https://"},
		{"another scheme", with(t, "https://", "unix:///run/"), invalid, "server: must start with https://"},
		{"opaque", with(t, "https://", "https:"), invalid, "server: must start with https://"},
		{"no server", with(t, server, "tls-server-name: x"), invalid, "clusters[0].cluster.server: is missing"},
		{"no host", with(t, "api.example.com:6443", ":6443"), invalid, "server: names no host"},
		{"an illegal port", with(t, "6443", "66443"), invalid, "server: has a port that does not exist"},
		{"no URL", with(t, "api.example.com:6443", "%zz"+canary), invalid, "server: is no URL"},
		{"a query", with(t, "6443", "6443/?x="+canary), invalid, "server: must not have a query or a fragment"},
		{"a password in the server", with(t, "https://", "https://me:"+canary+"@"), forbidden, "clusters[0].cluster.server: is not allowed, because it holds a user name or password"},
		{"K22 an unknown cluster", with(t, "cluster: there", "cluster: elsewhere"), invalid, `contexts[0].context.cluster: there is no cluster "elsewhere"`},
		{"an unknown user", with(t, "user: me", "user: you"), invalid, `contexts[0].context.user: there is no user "you"`},
		{"a context without user", with(t, "user: me", "namespace: x"), invalid, `there is no user ""`},
		{"K23 no current context", with(t, "current-context: main\n", ""), invalid, "current-context: is missing"},
		{"an unknown current context", with(t, "current-context: main", "current-context: other"), invalid, `current-context: there is no context "other"`},
		{"K25 a field twice", with(t, "user: me", "user: me\n    user: you"), invalid, "line 17: user is defined more than once (duplicate)"},
		{"a list twice", plain + "users: []\n", invalid, "line 17: users is defined more than once (duplicate)"},
		{"a name twice", with(t, "users:\n", "users:\n- {name: me, user: {token: x}}\n"), invalid, "users[1].name: is defined more than once (duplicate)"},
		{"K26 many aliases", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", invalid, "line 1: anchors and aliases are not allowed"},
		{"a merge", with(t, token, "<<: {exec: {}}"), forbidden, "users[0].user.exec: is not allowed"},
		{"a tag", with(t, token, "token: !!binary "+base64Of(canary)), invalid, "line 11: tags are not allowed"},
		{"K27 five megabytes", plain + "# " + strings.Repeat("x", 5<<20), tooLarge, "at most 1048576 are allowed"},
		{"K28 deep", strings.Repeat("[", 100_000), invalid, "is neither YAML nor JSON"},
		{"K29 a password", with(t, token, "username: me\n    password: "+canary), forbidden, "users[0].user.username: is not allowed, because passwords are not supported by API servers any more; use a token or a certificate; users[0].user.password:"},
		{"K30 another user", user(t, "as: admin"), forbidden, "users[0].user.as: is not allowed, because the component says which user is impersonated"},
		{"another user's uid", user(t, "as-uid: x"), forbidden, "users[0].user.as-uid:"},
		{"another user's groups", user(t, "as-groups: [system:masters]"), forbidden, "users[0].user.as-groups:"},
		{"another user's extra", user(t, "as-user-extra: {scopes: [x]}"), forbidden, "users[0].user.as-user-extra:"},
		{"K31 another kind", with(t, "kind: Config", "kind: ConfigMap"), invalid, "kubeconfig: kind: must be Config"},
		{"another version", with(t, "apiVersion: v1", "apiVersion: v2"), invalid, "apiVersion: must be v1"},
		{"UTF-16", utf16Of(plain, true), invalid, "is no text in UTF-8"},
		{"UTF-16 without a byte order mark", utf16Of(plain, false), invalid, "is no text in UTF-8"},
		{"an escape sequence", "\x1b[2J" + plain, invalid, "is no text in UTF-8"},
		{"two documents", plain + "---\n" + plain, invalid, "holds more than one document"},
		{"an authority that is not base64", cluster(t, "certificate-authority-data: '%'"), invalid, "certificate-authority-data, client-certificate-data and client-key-data must be data in base64"},
		{"an authority without certificates", cluster(t, "certificate-authority-data: "+base64Of(canary)), invalid, "certificate-authority-data: must hold certificates in PEM"},
		{"a broken authority", cluster(t, "certificate-authority-data: "+base64Of("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")), invalid, "must hold certificates in PEM"},
		{"a certificate without key", user(t, "client-certificate-data: "+certificate), invalid, "users[0].user.client-key-data: is missing"},
		{"a key without certificate", user(t, "client-key-data: "+key), invalid, "users[0].user.client-certificate-data: is missing"},
		{"a key that is none", user(t, "client-certificate-data: "+certificate, "client-key-data: "+base64Of(canary)), invalid, "users[0].user.client-key-data: must be the key"},
		{"no credentials", with(t, token, "extensions: []"), invalid, "users[0].user: has no credentials"},
		{"a token with a line break", with(t, token, "token: |\n      "+canary), invalid, "users[0].user.token: must not contain white space"},
		{"a token that is a number", with(t, token, "token: 12345"), invalid, "users.user.token: must be a string"},
		{"a token that is a list", with(t, token, "token: ["+canary+"]"), invalid, "users.user.token: must be a string"},
		{"a field that does not exist", cluster(t, "insecure-skip-tls-verfy: false"), invalid, "clusters[0].cluster.insecure-skip-tls-verfy: is no field of a kubeconfig"},
		{"another case", with(t, token, "Token: "+canary), invalid, "users[0].user.Token: is no field"},
		{"a secret as a field", with(t, token, canary+": x"), invalid, "users[0].user.(a name that is not shown): is no field of a kubeconfig"},
		{"a secret as a field that is there twice", with(t, token, canary+": x\n    "+canary+": x"), invalid, "line 12: (a name that is not shown) is defined more than once"},
		{"a secret as a key that is no text", with(t, token, "{"+canary+": x}: y"), invalid, "has keys or values that JSON does not have"},
		{"a secret as the name of an extra", user(t, "as-user-extra: {"+canary+": "+canary+"}"), invalid, "users.user.as-user-extra: must be a list"},
		{"bytes as a list", user(t, "client-key-data: [300]"), invalid, "users.user.client-key-data"},
		{"no name", with(t, "- name: me\n  user", "- user"), invalid, "users[0].name: is missing"},
		{"a mapping of users", with(t, "users:\n- name: me\n  user:\n    ", "users:\n  me:\n    "), invalid, "users: must be a list"},
		{"what is not used", with(t, "users:\n", "users:\n- {name: other, user: {exec: {command: x}}}\n"), forbidden, "users[0].user.exec:"},
		{"a mistake many times", plain + strings.Repeat("zzz: 1\n", 100), invalid, "line 37: zzz is defined more than once (duplicate); and 79 more"},
		{"everything at once", user(t, "exec: {command: x}", "zzz: 1") + "more: x\n", forbidden, "kubeconfig: more: is no field of a kubeconfig; users[0].user.zzz: is no field of a kubeconfig; users[0].user.exec: is not allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			access, err := kubeconfig.Parse([]byte(test.text))
			refused, ok := errors.AsType[*kubeconfig.Error](err)
			if !ok {
				t.Fatalf("got %+v and %v", access, err)
			}
			if refused.Reason() != test.reason || !strings.Contains(err.Error(), test.message) {
				t.Errorf("%s: %s\nwant %s: %s", refused.Reason(), err, test.reason, test.message)
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), base64Of(canary)) {
				t.Errorf("a secret is in the error: %s", err)
			}
			if again := check.ErrorOf(kubeconfig.Parse([]byte(test.text))); again.Error() != err.Error() {
				t.Errorf("the second time the error is %s", again)
			}
		})
	}
}
