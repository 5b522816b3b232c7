// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/kubeconfig"
)

// ErrClosed is returned by Acquire after Close.
var ErrClosed = errors.New("the pool of target clusters is closed")

// ErrBusy is returned while a target cluster is being probed for the first time, or is
// used by as many components as are allowed.
var ErrBusy = errors.New("the target cluster is being checked or in use by other components")

// ErrLocal is returned for a kubeconfig of the local cluster. There, impersonation limits the
// rights of a component, and a kubeconfig must not be a way around it.
var ErrLocal = errors.New("the kubeconfig leads to the cluster that the component lives in; remove it, and impersonate a user or service account if the component must not act as the operator")

// ErrPerhapsLocal is returned for a kubeconfig that may be one of the local cluster, and
// does not allow to find out.
var ErrPerhapsLocal = errors.New("the kubeconfig may lead to the cluster that the component lives in: it has the same server or certificate authority; grant its user the right to get the namespace kube-system, because its uid distinguishes clusters")

// UnreachableError means that the target cluster did not answer. It is being probed; the
// component is requeued when it answers.
type UnreachableError struct {
	// Err is the error of the last probe.
	Err error
}

// Error returns a sentence about the target cluster and the cause.
func (e *UnreachableError) Error() string {
	return "the target cluster cannot be reached: " + e.Err.Error()
}

// Unwrap returns the error of the last probe.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Access is a cluster and a user there. The zero value is the local cluster and the
// operator itself.
type Access struct {
	// Kubeconfig is one of a remote cluster. Nil means the local cluster; it is an
	// error if it is empty and not nil.
	Kubeconfig []byte
	// User and Groups are impersonated. Empty means the user of the operator or of
	// the kubeconfig. The order of the groups does not matter.
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
	var config *rest.Config
	switch {
	case a.User == "" && len(a.Groups) > 0:
		// The server would take the request for one of the operator itself.
		return nil, errors.New("groups cannot be impersonated without a user")
	case a.remote():
		parsed, err := kubeconfig.Parse(a.Kubeconfig)
		if err != nil {
			return nil, err
		}
		// Nothing comes from the environment of the operator.
		config = &rest.Config{
			Host:               parsed.Server,
			BearerToken:        parsed.Token,
			DisableCompression: parsed.DisableCompression,
			TLSClientConfig: rest.TLSClientConfig{
				ServerName: parsed.ServerName,
				CAData:     parsed.Authorities,
				CertData:   parsed.Certificate,
				KeyData:    parsed.Key,
			},
		}
	case local == nil:
		return nil, errors.New("there is no configuration of the local cluster")
	default:
		config = rest.CopyConfig(local)
	}
	if a.User != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: a.User, Groups: a.groups()}
	}
	return config, nil
}
