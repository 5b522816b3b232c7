// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// canary has characters that are escaped in quotes, in URLs and in JSON.
const canary = "canary<7\"f+3/q&x\\9>é"

func TestAValueIsHiddenInEveryForm(t *testing.T) {
	encoded, err := json.Marshal(canary)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"as it is":               canary,
		"quoted as Go does":      strconv.Quote(canary),
		"in JSON":                string(encoded),
		"quoted twice":           strconv.Quote(strconv.Quote(canary)),
		"in JSON in JSON":        strconv.Quote(string(encoded)),
		"the most of it":         canary[:17] + " is bad",
		"in a query":             "https://host/?x=" + url.QueryEscape(canary),
		"in a path":              "https://host/" + url.PathEscape(canary),
		"in base64":              base64.StdEncoding.EncodeToString([]byte(canary)),
		"as numbers":             fmt.Sprintf("Data: %v", []byte(canary)),
		"twice":                  canary + canary,
		"cut off":                canary[:12] + "...",
		"cut off by an ellipsis": canary[:9] + "…",
		"cut off at the end":     strings.Repeat("x", longText) + canary[:7],
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			s.Add(canary)
			got := s.Text("before " + form)
			if !strings.Contains(got, "before ") || !strings.Contains(got, Placeholder) {
				t.Errorf("got %q", got)
			}
			for _, rest := range []string{"canary", "Y2FuYXJ5", "y<7", "FuYXJ5", "uYXJ5", "97 110"} {
				if strings.Contains(got, rest) {
					t.Errorf("got %q", got)
				}
			}
		})
	}
}

func TestPartsOfAValueAreHidden(t *testing.T) {
	for _, tc := range []struct{ name, value, text string }{
		{"a line of a text", "first line\nsecret line\n", "error near 'secret line'"},
		{"what a line assigns", "user: jane\npassword: 'hunter22'\n", "bad password hunter22"},
		{"an assignment of an environment", "A=1\nPASSWORD=hunter22\n", "bad password hunter22"},
		{"a leaf of a document", `{"auths":{"reg.io":{"password":"hunter22"}}}`, "bad password hunter22"},
		{"the password of a URL", "postgres://jane:hunter22@db/shop", "bad password hunter22"},
		{"on one line", "hunter22  and\thunter33", "bad password hunter22 and hunter33"},
		{"without the white space around it", "hunter22\n", "bad password hunter22"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New()
			s.Add(tc.value)
			if got := s.Text(tc.text); !strings.Contains(got, Placeholder) || strings.Contains(got, "hunter") || strings.Contains(got, "secret") {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	s := New()
	s.Add("short", "production", "postgres-long-password", "postgres-long/password")
	s.Publish("production", "postgres-long-password!")
	if s.Publish("postgres-long/password"); s.Text("postgres-long/password") != Placeholder {
		t.Error("what is no name was published")
	}
	for _, text := range []string{
		"", "short", "Deployment shop/production: 1 of 3 replicas ready", "postgres-long is another word",
		"basic authentication is off", "authorization failed", "https://host:6443/api?timeout=30s", "mailto jane@example.com",
		"Basic Constraints are missing", "unknown bearer of bad news",
	} {
		if got := s.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestCredentialsAreHiddenWithoutKnowingThem(t *testing.T) {
	var none *Secrets
	for text, want := range map[string]string{
		"Authorization: Bearer abc.def-1":                                                  "Authorization: " + "Bearer " + Placeholder,
		`{"Authorization":["Basic dXNlcjpw"]}`:                                             `{"Authorization":["Basic ` + Placeholder + `"]}`,
		"sent bearer k8s-aws-v1.aHR0cHM6Ly9zd":                                             "sent bearer " + Placeholder,
		`Get "https://jane:hunter2@host:6443/api": EOF`:                                    `Get "https://` + Placeholder + `@host:6443/api": EOF`,
		"GET https://h/x?a=b&access_token=q1w2e3&c=d":                                      "GET https://h/x?a=b&access_token=" + Placeholder + "&c=d",
		"proxy http://user@proxy:3128 refused":                                             "proxy http://" + Placeholder + "@proxy:3128 refused",
		"x -----BEGIN RSA PRIVATE KEY-----\nMIIE\nq3\n-----END RSA PRIVATE KEY----- y":     "x " + Placeholder + " y",
		"00000000  6b 38 73 00 0a 0c 0a 02  76 31 12 06 53 65 63 72  |k8s.....v1..Secr|\n": Placeholder,
		`{"kind":"Secret","data":{"a":"b"},"x":{},"stringData":{}}`:                        `{"kind":"Secret","data":"` + Placeholder + `","x":{},"stringData":"` + Placeholder + `"}`,
		"-----BEGIN PRIVATE KEY-----\nMIIEcut":                                             Placeholder,
		"token eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.sig-nature ok":                     "token " + Placeholder + " ok",
	} {
		if got := none.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestACopyHoldsTheSameValues(t *testing.T) {
	s := New()
	s.Add("hunter22")
	copied := s.Copy()
	if !copied.Equal(s) || !s.Equal(copied) {
		t.Error("the copy is not equal")
	}
	s.Add("hunter33")
	if copied.Equal(s) || copied.Text("hunter22 hunter33") != Placeholder+" hunter33" {
		t.Error("the copy holds what was added later")
	}
	other := New()
	other.Include(copied)
	if got := other.Text("hunter22"); got != Placeholder {
		t.Errorf("got %q", got)
	}
	var none *Secrets
	none.Include(s)
	s.Include(none)
	if none.Copy().Size() != 0 || !none.Equal(New()) || none.Equal(s) {
		t.Error("a nil set holds something")
	}
}

func TestWhatIsAddedAfterATextIsHidden(t *testing.T) {
	s := New()
	s.Add("hunter22")
	_ = s.Text("hunter22")
	s.Add("hunter33")
	if got := s.Text("hunter33"); got != Placeholder {
		t.Errorf("got %q", got)
	}
}

func TestAFullSetHidesWhatIsQuoted(t *testing.T) {
	s := New()
	for i := range 40 {
		s.Add(fmt.Sprint(i) + strings.Repeat("x", 1<<18))
	}
	s.Add("hunter22")
	if got := s.Text(`data: Invalid value: "hunter22": no`); strings.Contains(got, "hunter22") || !strings.Contains(got, "Invalid value") {
		t.Errorf("got %q", got)
	}
}

func TestARedactedErrorIsStillFound(t *testing.T) {
	s := New()
	s.Add("hunter22")
	cause := &fs.PathError{Op: "open", Path: "hunter22", Err: fs.ErrNotExist}
	err := s.Error(fmt.Errorf("read: %w", cause))
	if got := fmt.Sprintf("%v %+v %#v %s", err, err, err, err); strings.Contains(got, "hunter22") {
		t.Errorf("got %s", got)
	}
	if found, ok := errors.AsType[*fs.PathError](err); !ok || found != cause || !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
	if s.Error(nil) != nil || s.Error(fs.ErrExist) != fs.ErrExist {
		t.Error("an error without secrets was changed")
	}
}

func FuzzText(f *testing.F) {
	f.Add("hunter22", "x hunter22 y")
	f.Add("ää\nöö=ßßßß", "ä…")
	f.Add("{\"a\":[\"b\"]}", "-----BEGIN PRIVATE KEY-----")
	f.Fuzz(func(t *testing.T, value, text string) {
		s := New()
		s.Add(value)
		got := s.Text(text + value + text)
		if len(value) >= minLength && !strings.Contains(Placeholder, value) && strings.Contains(got, value) && !strings.Contains(value, "[") {
			t.Errorf("%q is in %q", value, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	s := New()
	for i := range 1000 {
		s.Add(fmt.Sprintf("value-%d-%s", i*7919, strings.Repeat("z", i%50)))
	}
	text := strings.Repeat("Deployment shop/api: 1 of 3 replicas ready; ", 20)
	for b.Loop() {
		_ = s.Text(text)
	}
}

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
		secrets := New()
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
