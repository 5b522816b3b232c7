// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// admins is the group that may do everything and is never throttled by the server.
const admins = "system:masters"

// users of the environment's own clients, by the name of their kubeconfig.
// All are administrators: whether upstream's roles suffice for upstream's
// controllers is not what is tested here. The names distinguish them in audit logs.
var users = map[string]string{
	"kubeconfig":              "admin",
	"kube-controller-manager": "system:kube-controller-manager",
	"kube-scheduler":          "system:kube-scheduler",
	"podsim":                  "podsim",
}

// file returns the path of a file of the environment's state.
func (e *Environment) file(name string) string { return filepath.Join(e.run, name) }

// writeIdentities makes the authority, the server's certificate, and the key of
// service accounts' tokens.
func (e *Environment) writeIdentities() error {
	var err error
	if e.authority, err = newAuthority(); err != nil {
		return err
	}
	certificate, key, err := e.authority.server()
	if err != nil {
		return err
	}
	serviceAccounts, err := newKey()
	if err != nil {
		return err
	}
	serviceAccountsKey, err := encodeKey(serviceAccounts)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt":               e.authority.certificatePEM,
		"apiserver.crt":        certificate,
		"apiserver.key":        key,
		"service-accounts.key": serviceAccountsKey,
	} {
		if err := os.WriteFile(e.file(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ConfigFor returns the configuration of a client with a name and groups of its
// own, which may do what RBAC allows them. It is not throttled on the client side.
func (e *Environment) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	certificate, key, err := e.authority.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:  host(e.port),
		QPS:   -1,
		Burst: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   e.authority.certificatePEM,
			CertData: certificate,
			KeyData:  key,
		},
	}, nil
}

// writeKubeconfigs writes those of the environment's own clients. The port must be known.
func (e *Environment) writeKubeconfigs() error {
	for name, user := range users {
		config, err := e.ConfigFor(user, admins)
		if err != nil {
			return err
		}
		if err := clientcmd.WriteToFile(kubeconfigOf(config), e.file(name)); err != nil { // mode 0600
			return fmt.Errorf("write %s: %w", e.file(name), err)
		}
		if name == "kubeconfig" {
			e.config = config
			if e.http, err = rest.HTTPClientFor(config); err != nil {
				return err
			}
		}
	}
	return nil
}

func host(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }

func kubeconfigOf(config *rest.Config) clientcmdapi.Config {
	const name = "corbel-env"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return *kubeconfig
}
