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

// A pool assigns the addresses of a range in order, so that one that was returned is not
// assigned again soon.
type pool struct {
	mutex sync.Mutex
	from  netip.Prefix
	last  netip.Addr
	taken map[netip.Addr]bool
}

func newPool(from netip.Prefix) *pool {
	return &pool{from: from, last: from.Addr(), taken: map[netip.Addr]bool{}}
}

// allocate returns a free address, or an empty one if there is none left.
func (p *pool) allocate() string {
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

// free returns an address to the pool. An address outside of the range is ignored.
func (p *pool) free(address string) { p.set(address, false) }

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
