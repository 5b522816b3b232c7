// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// DialPolicy decides whether a target may be connected to at an address. It is
// asked for every connection, after names were resolved, so a name that means
// another address tomorrow gains nothing. An error refuses the address and says why.
// The network is "tcp4" or "tcp6".
type DialPolicy func(ctx context.Context, network string, address netip.AddrPort) error

// AddressDeniedError means that a [DialPolicy] refused an address. No connection
// was made.
type AddressDeniedError struct {
	Address netip.AddrPort
	// Err is the answer of the policy.
	Err error
}

// Error names the address.
func (e *AddressDeniedError) Error() string {
	return fmt.Sprintf("connections to the address %s are not allowed: %v", e.Address.Addr(), e.Err)
}

// Unwrap returns the answer of the policy.
func (e *AddressDeniedError) Unwrap() error { return e.Err }

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

// confine makes clients of the configuration connect only where the policy
// allows it. There is no proxy: it would be what is connected to.
func confine(config *rest.Config, policy DialPolicy) error {
	if config.Transport != nil || config.Dial != nil || config.Proxy != nil {
		return errors.New("a dial policy cannot hold for a configuration with a transport, a dialer or a proxy of its own")
	}
	dialer := &net.Dialer{
		Timeout:   dialTimeout,
		KeepAlive: keepAlive,
		ControlContext: func(ctx context.Context, network, address string, _ syscall.RawConn) error {
			resolved, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %q: %w", address, err)
			}
			if err := policy(ctx, network, resolved); err != nil {
				return &AddressDeniedError{Address: resolved, Err: err}
			}
			return nil
		},
	}
	config.Dial = dialer.DialContext
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return nil
}
