// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"net/netip"
	"sync"
)

// Where addresses come from. Pods' are private ones, load balancers' from the range
// for benchmarks, which is never routed.
var (
	podAddresses      = netip.MustParsePrefix("10.244.0.0/16")
	balancerAddresses = netip.MustParsePrefix("198.18.0.0/15")
)

// A pool hands out the addresses of a range in turn, so that one which was given
// back is not seen again soon.
type pool struct {
	mutex sync.Mutex
	from  netip.Prefix
	last  netip.Addr
	taken map[netip.Addr]bool
}

func newPool(from netip.Prefix) *pool {
	return &pool{from: from, last: from.Addr(), taken: map[netip.Addr]bool{}}
}

// take returns a free address, or an empty one if there is none left.
func (p *pool) take() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for range 1 << (32 - p.from.Bits()) {
		p.last = p.last.Next()
		if !p.from.Contains(p.last) {
			p.last = p.from.Addr().Next()
		}
		if !p.taken[p.last] {
			p.taken[p.last] = true
			return p.last.String()
		}
	}
	return ""
}

// reserve takes an address that is already in use.
func (p *pool) reserve(address string) { p.set(address, true) }

// give takes an address back. An address that is not the pool's is none of its business.
func (p *pool) give(address string) { p.set(address, false) }

func (p *pool) set(address string, taken bool) {
	a, err := netip.ParseAddr(address)
	if err != nil || !p.from.Contains(a) {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if taken {
		p.taken[a] = true
	} else {
		delete(p.taken, a)
	}
}
