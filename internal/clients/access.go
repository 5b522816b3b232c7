// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/kubeconfig"
)

// Access says which cluster, and who we are there. The zero value is the local
// cluster and the operator itself.
type Access struct {
	// Kubeconfig leads to another cluster. Nil means the local one; what is
	// empty and not nil is a mistake.
	Kubeconfig []byte
	// User and Groups are impersonated. Empty means the identity of the operator
	// or of the kubeconfig. The order of the groups does not matter.
	User   string
	Groups []string
}

func (a Access) remote() bool { return a.Kubeconfig != nil }

// key identifies an access: no two of them share one.
type key [sha256.Size]byte

func (a Access) key() key {
	hash := sha256.New()
	write := func(part []byte) {
		_ = binary.Write(hash, binary.BigEndian, int64(len(part))) // a hash never fails
		hash.Write(part)
	}
	if a.remote() {
		write([]byte("kubeconfig"))
	}
	write(a.Kubeconfig)
	write([]byte(a.User))
	for _, group := range a.groups() {
		write([]byte(group))
	}
	return key(hash.Sum(nil))
}

func (a Access) groups() []string { return slices.Compact(slices.Sorted(slices.Values(a.Groups))) }

// config returns the configuration of a client. Mistakes in a kubeconfig are a
// *kubeconfig.Error.
func (a Access) config(local *rest.Config) (*rest.Config, error) {
	if a.User == "" && len(a.Groups) > 0 {
		// The server would take the request for one of ourselves.
		return nil, errors.New("groups cannot be impersonated without a user")
	}
	config, err := a.base(local)
	if err != nil {
		return nil, err
	}
	if a.User != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: a.User, Groups: a.groups()}
	}
	return config, nil
}

func (a Access) base(local *rest.Config) (*rest.Config, error) {
	switch {
	case a.remote():
		access, err := kubeconfig.Parse(a.Kubeconfig)
		if err != nil {
			return nil, err
		}
		return remoteConfig(access), nil
	case local == nil:
		return nil, fmt.Errorf("there is no configuration of the local cluster")
	}
	return rest.CopyConfig(local), nil
}

// remoteConfig holds what the kubeconfig says and nothing from around us.
func remoteConfig(access kubeconfig.Access) *rest.Config {
	return &rest.Config{
		Host:               access.Server,
		BearerToken:        access.Token,
		DisableCompression: access.DisableCompression,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: access.ServerName,
			CAData:     access.Authorities,
			CertData:   access.Certificate,
			KeyData:    access.Key,
		},
	}
}
