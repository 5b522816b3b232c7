// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Access is the cluster and the user of the current context of a kubeconfig: an address and
// credentials.
type Access struct {
	// Server is the https URL of the API server.
	Server string
	// ServerName is the name in the server's certificate, if it is not the host of
	// the URL.
	ServerName string
	// Authorities are the certificates, in PEM, that the server is verified with; empty for the
	// certificates of the system.
	Authorities []byte
	// Certificate and Key, in PEM, and Token are the credentials. There is a
	// certificate with its key, or a token, or both.
	Certificate, Key []byte
	Token            string
	// DisableCompression asks the server for responses without compression.
	DisableCompression bool
}

// Parse reads a kubeconfig in YAML or JSON. The error is an *[Error] with all
// problems that were found.
func Parse(raw []byte) (Access, error) {
	var v validation
	config := v.decode(raw)
	if config == nil {
		return Access{}, &Error{Problems: v.problems}
	}
	access := v.config(config)
	if len(v.problems) > 0 {
		return Access{}, &Error{Problems: v.problems}
	}
	return access, nil
}

// validation collects the problems of one kubeconfig.
type validation struct {
	problems []Problem
}

func (v *validation) report(reason, path, format string, arguments ...any) {
	v.problems = append(v.problems, Problem{Reason: reason, Path: path, Text: fmt.Sprintf(format, arguments...)})
}

func (v *validation) invalid(path, format string, arguments ...any) {
	v.report(vocabulary.ReasonKubeconfigInvalid, path, format, arguments...)
}

// config validates all entries, and returns the entries of the current context.
func (v *validation) config(config *clientcmdv1.Config) Access {
	if config.APIVersion != "" && config.APIVersion != "v1" {
		v.invalid("apiVersion", "must be v1")
	}
	if config.Kind != "" && config.Kind != "Config" {
		v.invalid("kind", "must be Config")
	}
	clusters := v.names("clusters", len(config.Clusters), func(i int) string { return config.Clusters[i].Name })
	users := v.names("users", len(config.AuthInfos), func(i int) string { return config.AuthInfos[i].Name })
	contexts := v.names("contexts", len(config.Contexts), func(i int) string { return config.Contexts[i].Name })
	for i := range config.Clusters {
		v.cluster(fmt.Sprintf("clusters[%d].cluster", i), &config.Clusters[i].Cluster)
	}
	for i := range config.AuthInfos {
		v.user(fmt.Sprintf("users[%d].user", i), &config.AuthInfos[i].AuthInfo)
	}
	if len(config.Clusters) == 0 {
		v.invalid("clusters", "no cluster is defined")
	}
	if config.CurrentContext == "" {
		v.invalid("current-context", "is missing")
		return Access{}
	}
	at, ok := contexts[config.CurrentContext]
	if !ok {
		v.invalid("current-context", "there is no context %.64q", config.CurrentContext)
		return Access{}
	}
	var access Access
	path, current := fmt.Sprintf("contexts[%d].context", at), config.Contexts[at].Context
	if i, ok := clusters[current.Cluster]; ok {
		cluster := config.Clusters[i].Cluster
		access.Server, access.ServerName = cluster.Server, cluster.TLSServerName
		access.Authorities, access.DisableCompression = cluster.CertificateAuthorityData, cluster.DisableCompression
	} else {
		v.invalid(path+".cluster", "there is no cluster %.64q", current.Cluster)
	}
	if i, ok := users[current.AuthInfo]; ok {
		user := config.AuthInfos[i].AuthInfo
		access.Certificate, access.Key, access.Token = user.ClientCertificateData, user.ClientKeyData, user.Token
		if access.Token == "" && len(access.Certificate) == 0 {
			v.invalid(fmt.Sprintf("users[%d].user", i), "has no credentials: needs a token, or client-certificate-data and client-key-data")
		}
	} else {
		v.invalid(path+".user", "there is no user %.64q", current.AuthInfo)
	}
	return access
}

// names returns the positions of the items of a list by their names, each of which
// must be there once.
func (v *validation) names(list string, length int, name func(i int) string) map[string]int {
	positions := map[string]int{}
	for i := range length {
		path := fmt.Sprintf("%s[%d].name", list, i)
		if name(i) == "" {
			v.invalid(path, "is missing")
			continue
		}
		if _, ok := positions[name(i)]; ok {
			v.invalid(path, "is defined more than once (duplicate)")
			continue
		}
		positions[name(i)] = i
	}
	return positions
}

// allowedFields are the fields of a cluster and of a user that may be set. Fields that are neither
// here nor in forbiddenFields are forbidden, too: the type may get fields with a meaning that this
// package does not know.
var allowedFields = []string{
	"server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "disable-compression",
	"token", "client-certificate-data", "client-key-data", "extensions",
}

// forbiddenFields map a field that must not be set to the reason.
var forbiddenFields = map[string]string{
	"certificate-authority": "it names a file; put the content into certificate-authority-data",
	"proxy-url":             "it sends requests to somewhere else than the server",
	"client-certificate":    "it names a file; put the content into client-certificate-data",
	"client-key":            "it names a file; put the content into client-key-data",
	"tokenFile":             "it names a file; put the content into token",
	"username":              noPassword,
	"password":              noPassword,
	"exec":                  noProgram,
	"auth-provider":         noProgram,
	"as":                    noImpersonation,
	"as-uid":                noImpersonation,
	"as-groups":             noImpersonation,
	"as-user-extra":         noImpersonation,
}

const (
	noPassword      = "passwords are not supported by API servers any more; use a token or a certificate"
	noProgram       = "it runs a program where the operator runs"
	noImpersonation = "the component says which user is impersonated"
)

// fields reports each field of a struct that is set and not allowed.
func (v *validation) fields(path string, value reflect.Value) {
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if value.Field(i).IsZero() || slices.Contains(allowedFields, name) {
			continue
		}
		why, ok := forbiddenFields[name]
		if !ok {
			why = "the operator does not know its meaning"
		}
		v.report(vocabulary.ReasonKubeconfigForbiddenField, path+"."+name, "is not allowed, because %s", why)
	}
}

func (v *validation) cluster(path string, cluster *clientcmdv1.Cluster) {
	v.fields(path, reflect.ValueOf(*cluster))
	if cluster.InsecureSkipTLSVerify {
		v.report(vocabulary.ReasonKubeconfigInsecure, path+".insecure-skip-tls-verify",
			"must not be true, because any host could answer for the server; put its authority into certificate-authority-data")
	}
	v.server(path+".server", cluster.Server)
	if len(cluster.CertificateAuthorityData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(cluster.CertificateAuthorityData) {
		v.invalid(path+".certificate-authority-data", "must hold certificates in PEM")
	}
}

// server never shows the URL: its user information may be a password.
func (v *validation) server(path, server string) {
	if server == "" {
		v.invalid(path, "is missing")
		return
	}
	u, err := url.Parse(server)
	switch {
	case err != nil:
		v.invalid(path, "is no URL")
	case u.Scheme == "http":
		v.report(vocabulary.ReasonKubeconfigInsecure, path, "must start with https://, because http can be read and changed on the way")
	case u.Scheme != "https" || u.Opaque != "":
		v.invalid(path, "must start with https://")
	case u.Hostname() == "":
		v.invalid(path, "names no host")
	case u.User != nil:
		v.report(vocabulary.ReasonKubeconfigForbiddenField, path, "is not allowed, because it holds a user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		v.invalid(path, "must not have a query or a fragment")
	case !isPort(u.Port()):
		v.invalid(path, "has a port that does not exist")
	}
}

func isPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func (v *validation) user(path string, user *clientcmdv1.AuthInfo) {
	v.fields(path, reflect.ValueOf(*user))
	if !isPrintable(user.Token) {
		v.invalid(path+".token", "must not contain white space, line breaks or characters beyond ASCII")
	}
	certificate, key := user.ClientCertificateData, user.ClientKeyData
	switch {
	case len(certificate) == 0 && len(key) == 0:
	case len(certificate) == 0:
		v.invalid(path+".client-certificate-data", "is missing, although there is a client-key-data")
	case len(key) == 0:
		v.invalid(path+".client-key-data", "is missing, although there is a client-certificate-data")
	default:
		if _, err := tls.X509KeyPair(certificate, key); err != nil {
			v.invalid(path+".client-key-data", "must be the key, in PEM, of the certificate in client-certificate-data, which must be in PEM, too")
		}
	}
}

// isPrintable reports whether the text can stand in the header of a request.
func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
