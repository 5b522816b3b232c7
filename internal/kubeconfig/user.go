// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"

	"go.yaml.in/yaml/v3"
)

type user struct {
	certificate, key []byte
	token            string
}

func (r *reader) user(path string, value *yaml.Node) user {
	const (
		program     = "it runs a program where the operator runs"
		password    = "passwords are not supported by API servers any more; use a token or a certificate"
		impersonate = "the component says which user is impersonated"
	)
	var u user
	r.mapping(path, value, fields{
		"token":                   r.text(&u.token),
		"client-certificate-data": r.data(&u.certificate),
		"client-key-data":         r.data(&u.key),
		"client-certificate":      r.forbidden("it names a file; put the content into client-certificate-data"),
		"client-key":              r.forbidden("it names a file; put the content into client-key-data"),
		"tokenFile":               r.forbidden("it names a file; put the content into token"),
		"username":                r.forbidden(password),
		"password":                r.forbidden(password),
		"exec":                    r.forbidden(program),
		"auth-provider":           r.forbidden(program),
		"as":                      r.forbidden(impersonate),
		"as-uid":                  r.forbidden(impersonate),
		"as-groups":               r.forbidden(impersonate),
		"as-user-extra":           r.forbidden(impersonate),
		"extensions":              ignored,
	})
	if !isPrintable(u.token) {
		r.invalid(path+".token", "must not contain white space, line breaks or characters beyond ASCII")
	}
	r.checkCertificate(path, u)
	return u
}

func (r *reader) checkCertificate(path string, u user) {
	switch {
	case len(u.certificate) == 0 && len(u.key) == 0:
	case len(u.certificate) == 0:
		r.invalid(path+".client-certificate-data", "is missing, although there is a client-key-data")
	case len(u.key) == 0:
		r.invalid(path+".client-key-data", "is missing, although there is a client-certificate-data")
	default:
		if _, err := tls.X509KeyPair(u.certificate, u.key); err != nil {
			r.invalid(path+".client-key-data", "must be the key, in PEM, of the certificate in client-certificate-data, which must be in PEM, too")
		}
	}
}

// isPrintable tells whether the text can stand in the header of a request.
func isPrintable(text string) bool {
	for _, b := range []byte(text) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}

// holdCertificates tells whether the text consists of certificates in PEM, and at
// least one.
func holdCertificates(text []byte) bool {
	found := false
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return found
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
		found = true
	}
}

func (r *reader) useUser(u named[user], access *Access) {
	access.Certificate, access.Key, access.Token = u.value.certificate, u.value.key, u.value.token
	if access.Token == "" && len(access.Certificate) == 0 {
		r.invalid(u.path, "has no credentials: needs a token, or client-certificate-data and client-key-data")
	}
}
