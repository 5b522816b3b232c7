// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// ErrClosed is returned for targets that are asked for after Close.
var ErrClosed = errors.New("the pool of clients is closed")

// Pool holds the targets in one cluster, by identity. It is safe for
// concurrent use.
type Pool struct {
	config  *rest.Config
	options cluster.Options

	lock    sync.Mutex
	closed  bool
	targets map[string]cluster.Target
}

// New returns a Pool of targets in the cluster of the configuration.
func New(local *rest.Config, options cluster.Options) *Pool {
	return &Pool{config: local, options: options, targets: map[string]cluster.Target{}}
}

// Local returns the target with the operator's own identity.
func (p *Pool) Local() (cluster.Target, error) {
	return p.get("", func(*rest.Config) {})
}

// Impersonated returns the target of a user, whom the operator must be allowed
// to impersonate. The order of the groups does not matter.
func (p *Pool) Impersonated(user string, groups []string) (cluster.Target, error) {
	if user == "" {
		// The server would take the request for one of the operator itself.
		return nil, errors.New("who is to be impersonated has no name")
	}
	groups = slices.Compact(slices.Sorted(slices.Values(groups)))
	return p.get(identity(user, groups), func(config *rest.Config) {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	})
}

// identity is a key that no two identities share.
func identity(user string, groups []string) string {
	var key strings.Builder
	key.WriteString(strconv.Quote(user))
	for _, group := range groups {
		key.WriteString(strconv.Quote(group))
	}
	return key.String()
}

func (p *Pool) get(key string, adapt func(*rest.Config)) (cluster.Target, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if target, ok := p.targets[key]; ok {
		return target, nil
	}
	if p.config == nil {
		return nil, errors.New("there is no configuration of the local cluster")
	}
	config := rest.CopyConfig(p.config)
	adapt(config)
	target, err := cluster.New(config, p.options)
	if err != nil {
		return nil, fmt.Errorf("client for the local cluster: %w", err)
	}
	p.targets[key] = target
	return target, nil
}

// Close closes all targets. Those that are in use remain usable.
func (p *Pool) Close() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.closed = true
	for _, target := range p.targets {
		target.Close()
	}
	clear(p.targets)
}
