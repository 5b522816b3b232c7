// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// maxTargets bounds how many identities are kept; beyond that the pool starts anew.
const maxTargets = 256

// Pool makes targets and keeps them. It is safe for concurrent use.
type Pool struct {
	local   *rest.Config
	options cluster.Options

	mu      sync.Mutex
	targets map[string]cluster.Target
}

// New returns a pool of targets in the cluster that the configuration describes.
func New(local *rest.Config, options cluster.Options) *Pool {
	return &Pool{local: local, options: options, targets: map[string]cluster.Target{}}
}

// Local returns the target with the identity of the configuration.
func (p *Pool) Local() (cluster.Target, error) {
	return p.get("", p.local)
}

// Impersonated returns the target with the identity of another user. An empty
// user is an error: it would mean the identity of the configuration.
func (p *Pool) Impersonated(user string, groups []string) (cluster.Target, error) {
	if user == "" {
		return nil, errors.New("the user to impersonate must not be empty")
	}
	if p.local == nil {
		return nil, errors.New("a target needs a client configuration")
	}
	config := rest.CopyConfig(p.local)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: slices.Clone(groups)}
	return p.get(strings.Join(append([]string{user}, groups...), "\x00"), config)
}

func (p *Pool) get(key string, config *rest.Config) (cluster.Target, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.targets[key]; ok {
		return known, nil
	}
	made, err := cluster.New(config, p.options)
	if err != nil {
		return nil, err
	}
	if len(p.targets) >= maxTargets {
		p.closeAll()
	}
	p.targets[key] = made
	return made, nil
}

// Close closes the idle connections of all targets.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

func (p *Pool) closeAll() {
	for key, target := range p.targets {
		target.Close()
		delete(p.targets, key)
	}
}
