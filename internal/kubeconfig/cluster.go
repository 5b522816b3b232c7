// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

type cluster struct {
	server, serverName string
	authorities        []byte
	disableCompression bool
}

func (r *reader) cluster(path string, value *yaml.Node) cluster {
	var c cluster
	var insecure bool
	r.mapping(path, value, fields{
		"server":                     r.text(&c.server),
		"tls-server-name":            r.text(&c.serverName),
		"insecure-skip-tls-verify":   r.flag(&insecure),
		"certificate-authority":      r.forbidden("it names a file; put the content into certificate-authority-data"),
		"certificate-authority-data": r.data(&c.authorities),
		"proxy-url":                  r.forbidden("it sends requests to somewhere else than the server"),
		"disable-compression":        r.flag(&c.disableCompression),
		"extensions":                 ignored,
	})
	if insecure {
		r.report(v1alpha1.ReasonKubeconfigInsecure, path+".insecure-skip-tls-verify",
			"must not be true, because any host could answer for the server; put its authority into certificate-authority-data")
	}
	r.checkServer(path+".server", c.server)
	if len(c.authorities) > 0 && !holdCertificates(c.authorities) {
		r.invalid(path+".certificate-authority-data", "must hold certificates in PEM")
	}
	return c
}

// checkServer never shows the URL, whose user information may be a password.
func (r *reader) checkServer(path, server string) {
	if server == "" {
		r.invalid(path, "is missing")
		return
	}
	u, err := url.Parse(server)
	switch {
	case err != nil:
		r.invalid(path, "is no URL")
	case u.Scheme == "http":
		r.report(v1alpha1.ReasonKubeconfigInsecure, path, "must begin with https://, because everybody on the way can read and change http")
	case u.Scheme != "https" || u.Opaque != "":
		r.invalid(path, "must begin with https://")
	case u.Hostname() == "":
		r.invalid(path, "names no host")
	case u.User != nil:
		r.report(v1alpha1.ReasonKubeconfigForbiddenField, path, "is not allowed, because it holds a user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		r.invalid(path, "must not have a query or a fragment")
	case !isPort(u.Port()):
		r.invalid(path, "has a port that does not exist")
	}
}

func isPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func (r *reader) useCluster(c named[cluster], access *Access) {
	access.Server = c.value.server
	access.ServerName = c.value.serverName
	access.Authorities = c.value.authorities
	access.DisableCompression = c.value.disableCompression
}

// quote shows a name, but not all of it if it is no name at all.
func quote(name string) string {
	const limit = 64
	if len(name) > limit {
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return strconv.Quote(name)
}
