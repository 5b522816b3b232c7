// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"net/http"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Connection is the way to a cluster with the rights of one user. It is safe for concurrent use.
type Connection struct {
	// Config is that of the clients, and HTTP sends their requests.
	Config *rest.Config
	HTTP   *http.Client
	// Client reads from the server, without a cache.
	Client client.WithWatch

	mapper    *restmapper.DeferredDiscoveryRESTMapper
	discovery discovery.CachedDiscoveryInterface
}

// Connect returns the way to the cluster of a configuration, which is not changed. Nothing is asked until it is used.
func Connect(config *rest.Config) (*Connection, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1 // the server decides how many requests it serves
	config.WarningHandler = rest.NoWarnings{}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// Not the cache on the disk that kubectl keeps: it does not know types that were installed since.
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(discoverer)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	c, err := client.NewWithWatch(config, client.Options{HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Connection{Config: config, HTTP: httpClient, Client: c, mapper: mapper, discovery: cached}, nil
}

// Reader returns a reader that asks once which types there are.
func (c *Connection) Reader() *Reader {
	return &Reader{Client: c.Client, Mapper: c.mapper, Discovery: c.discovery}
}

// Forget forgets which types there are, so that the next reader asks again.
func (c *Connection) Forget() {
	c.discovery.Invalidate()
	c.mapper.Reset()
}
