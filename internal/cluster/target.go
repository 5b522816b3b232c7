// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Target is a cluster and a user in it. It is safe for concurrent use.
type Target interface {
	// UID returns the identity of the cluster: the uid of the namespace kube-system or, if that may
	// not be read, Address. The uid is read from the server once; that it may not be read is cached
	// for a minute, other failures are not.
	UID(ctx context.Context) (types.UID, error)
	// Address identifies the cluster by the URL of its server and by the certificate
	// authorities that vouch for it. It is empty without the option ByAddress.
	Address() types.UID
	// Objects returns the client for objects of any type.
	Objects() *Objects
	// Types returns the types that the server serves.
	Types() *Types
	// Client returns an ordinary client that reads from the server. Its
	// requests end after the list timeout at the latest.
	Client() client.Client
	// Config returns a copy of the configuration that the target was made from.
	// Clients made of it are held to the dial policy, too.
	Config() *rest.Config
	// Close closes idle connections. The target remains usable.
	Close()
}

// Options tune a Target. The zero value is ready to use.
type Options struct {
	// Scheme is for Client.
	//
	// Default: the scheme of client-go
	Scheme *runtime.Scheme
	// RequestTimeout bounds each request, retries included, except lists.
	//
	// Default: 30 seconds
	RequestTimeout time.Duration
	// MaxResponseBytes bounds the size of each answer.
	//
	// Unit: bytes
	// Default: 64 MiB
	MaxResponseBytes int64
	// ByAddress lets a cluster be identified by its address if the server forbids to get the
	// namespace kube-system.
	//
	// Default: false: that is an error
	ByAddress bool
	// DialPolicy restricts the addresses that connections go to; proxies of the environment are not
	// used then.
	//
	// Default: no restriction
	DialPolicy DialPolicy
}

func (o Options) withDefaults() Options {
	o.Scheme = cmp.Or(o.Scheme, scheme.Scheme)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 30*time.Second)
	o.MaxResponseBytes = cmp.Or(o.MaxResponseBytes, 64<<20)
	return o
}

// listTimeout bounds each list, and each request of the ordinary client.
const listTimeout = 60 * time.Second

type target struct {
	config  *rest.Config
	http    *http.Client
	objects *Objects
	types   *Types
	client  client.Client
	address types.UID

	uidLock sync.Mutex
	uid     types.UID
	refused time.Time // when the server last refused to read the uid
}

// New returns the target that the configuration describes. It sends no
// request, so it succeeds also if the cluster cannot be reached. Throttling and
// timeouts of the configuration are replaced, see [Options].
func New(config *rest.Config, options Options) (Target, error) {
	if config == nil {
		return nil, errors.New("a target needs a client configuration")
	}
	options = options.withDefaults()
	config = rest.CopyConfig(config)
	if options.DialPolicy != nil {
		if err := confine(config, options.DialPolicy); err != nil {
			return nil, fmt.Errorf("client configuration: %w", err)
		}
	}
	original := rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = -1, -1, nil
	config.Timeout = 0 // bounded per request, because a watch must not be
	config.UserAgent = cmp.Or(config.UserAgent, "corbel")
	config.WarningHandler, config.WarningHandlerWithContext = nil, warnings{}

	httpClient, err := boundedClient(config, options.MaxResponseBytes)
	if err != nil {
		return nil, fmt.Errorf("client configuration: %w", err)
	}
	t := &target{config: original, http: httpClient}
	if options.ByAddress {
		if t.address, err = addressOf(original); err != nil {
			return nil, fmt.Errorf("client configuration: %w", err)
		}
	}
	if t.objects, err = newObjects(config, httpClient, options); err != nil {
		return nil, fmt.Errorf("client configuration: %w", err)
	}
	t.types = newTypes(t.objects, options.RequestTimeout)
	t.objects.unserved = t.types.forgetResource

	bounded := &http.Client{Transport: httpClient.Transport, Timeout: listTimeout}
	t.client, err = client.New(config, client.Options{HTTPClient: bounded, Scheme: options.Scheme})
	if err != nil {
		return nil, fmt.Errorf("client configuration: %w", err)
	}
	return t, nil
}

var namespaces = Resource{GVR: gvr("", "v1", "namespaces"), Kind: "Namespace"}

// refusedFor is how long a target is known by its address before the uid is read
// again: the right to read it may be granted, and a server that has just started
// refuses everything for a moment.
const refusedFor = time.Minute

func (t *target) UID(ctx context.Context) (types.UID, error) {
	t.uidLock.Lock()
	uid, refused := t.uid, time.Since(t.refused) < refusedFor
	t.uidLock.Unlock()
	switch {
	case uid != "":
		return uid, nil
	case refused:
		return t.address, nil
	}
	// Read without the lock: a target that does not answer holds up no caller
	// for longer than the context allows.
	namespace, err := t.objects.Get(ctx, namespaces, "", "kube-system")
	if apierrors.IsForbidden(err) && t.address != "" {
		t.uidLock.Lock()
		defer t.uidLock.Unlock()
		t.refused = time.Now()
		return cmp.Or(t.uid, t.address), nil
	}
	if err != nil {
		return "", fmt.Errorf("read the uid of the namespace kube-system, which identifies the cluster: %w", err)
	}
	if uid = namespace.GetUID(); uid == "" {
		return "", errors.New("the namespace kube-system has no uid to identify the cluster by")
	}
	t.uidLock.Lock()
	defer t.uidLock.Unlock()
	t.uid = cmp.Or(t.uid, uid)
	return t.uid, nil
}

func (t *target) Address() types.UID    { return t.address }
func (t *target) Objects() *Objects     { return t.objects }
func (t *target) Types() *Types         { return t.types }
func (t *target) Client() client.Client { return t.client }
func (t *target) Config() *rest.Config  { return rest.CopyConfig(t.config) }
func (t *target) Close()                { t.http.CloseIdleConnections() }
