// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// A user that may not read the namespace kube-system identifies the cluster by the
// address: the URL of the server, and the certificate authorities that vouch for it.
// An address is another kind of cluster ID than a uid, and the two are never equal: that
// they stand for one cluster follows from neither.

// addressOf returns the address of the cluster that a configuration leads to. How the
// certificates are ordered and written makes no difference.
func addressOf(config *rest.Config) (types.UID, error) {
	server, err := serverOf(config)
	if err != nil {
		return "", err
	}
	authorities, err := authoritiesOf(config)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(authorities, "")))
	return types.UID(server + "#" + hex.EncodeToString(sum[:16])), nil
}

// IsAddress reports whether the ID of a cluster is an address, not a uid.
func IsAddress(id types.UID) bool { return strings.Contains(string(id), "://") }

// MayBeOne reports whether two configurations may lead to one cluster, going by their
// addresses: they have the same server, or trust the same certificate authority.
func MayBeOne(a, b *rest.Config) (bool, error) {
	for _, config := range []*rest.Config{a, b} {
		if _, err := addressOf(config); err != nil {
			return false, err
		}
	}
	first, _ := serverOf(a)
	second, _ := serverOf(b)
	ours, _ := authoritiesOf(a)
	theirs, _ := authoritiesOf(b)
	shared := slices.ContainsFunc(ours, func(authority string) bool { return slices.Contains(theirs, authority) })
	return first == second || shared, nil
}

// serverOf is the URL of the server in one form.
func serverOf(config *rest.Config) (string, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", fmt.Errorf("the URL of the server: %w", err)
	}
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	form := url.URL{Scheme: base.Scheme, Host: strings.ToLower(base.Hostname()) + ":" + port, Path: strings.TrimRight(base.Path, "/")}
	return form.String(), nil
}

// authoritiesOf are the certificates of the authorities, ordered; none if the authorities of the
// system are trusted.
func authoritiesOf(config *rest.Config) ([]string, error) {
	loaded := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return nil, fmt.Errorf("the certificate authorities: %w", err)
	}
	var authorities []string
	for block, rest := pem.Decode(loaded.CAData); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			authorities = append(authorities, string(block.Bytes))
		}
	}
	slices.Sort(authorities)
	return slices.Compact(authorities), nil
}
