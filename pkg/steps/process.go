// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"crypto/rand"
	"os"
	"sync"
)

// process is one process that holds locks.
type process struct {
	host  string
	nonce string

	mu      sync.Mutex
	running map[string]bool // by token
}

// thisProcess is the one that we are in.
var thisProcess = newProcess()

func newProcess() *process {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return &process{host: host, nonce: rand.Text(), running: map[string]bool{}}
}

func (p *process) begin(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[token] = true
}

func (p *process) end(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, token)
}

func (p *process) runs(lock *LockInfo) bool {
	if lock == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[lock.Token]
}
