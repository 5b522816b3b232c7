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

// DialPolicy decides whether a target may be connected to at an address. It is asked for every
// connection, after names were resolved, so a name that means another address tomorrow gains
// nothing. An error refuses the address. The network is "tcp4" or "tcp6".
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
	// Limit: the time to connect to a target cluster.
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

// confine makes clients of the configuration connect only where the policy allows it. There is no
// proxy: the policy would see the proxy's address.
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

// DenyInternal is the [DialPolicy] for targets that a user of the operator names, not its owner. It
// refuses the machine itself, the link it is on, addresses that no server has, and the services by
// which clouds hand out credentials. It allows private networks: that is where many clusters are.
func DenyInternal(_ context.Context, _ string, address netip.AddrPort) error {
	for _, addr := range meanings(address.Addr()) {
		for _, class := range internal {
			if class.prefix.Contains(addr) {
				return errors.New(class.text)
			}
		}
	}
	return nil
}

type addressClass struct {
	prefix netip.Prefix
	text   string
}

const (
	metadata = "it is a metadata service of a cloud"
	loopback = "it is the machine that the operator runs on"
	link     = "it is only valid on the operator's own link"
	special  = "it is no address of a server"
)

// internal lists the more specific first.
var internal = []addressClass{
	{netip.MustParsePrefix("169.254.169.254/32"), metadata},
	{netip.MustParsePrefix("169.254.170.0/24"), metadata}, // credentials of containers
	{netip.MustParsePrefix("100.100.100.200/32"), metadata},
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},
	{netip.MustParsePrefix("192.0.0.192/32"), metadata},
	{netip.MustParsePrefix("fd00:ec2::/32"), metadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata},
	{netip.MustParsePrefix("fd00:42::42/128"), metadata},
	{netip.MustParsePrefix("127.0.0.0/8"), loopback},
	{netip.MustParsePrefix("::1/128"), loopback},
	{netip.MustParsePrefix("0.0.0.0/8"), loopback}, // systems connect to themselves
	{netip.MustParsePrefix("::/128"), loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), link},
	{netip.MustParsePrefix("fe80::/10"), link},
	{netip.MustParsePrefix("224.0.0.0/4"), special},
	{netip.MustParsePrefix("240.0.0.0/4"), special},
	{netip.MustParsePrefix("ff00::/8"), special},
}

// meanings returns the address, and the IPv4 addresses that gateways would take
// it for.
func meanings(addr netip.Addr) []netip.Addr {
	addr = addr.Unmap().WithZone("")
	all := []netip.Addr{addr}
	if addr.Is4() {
		return all
	}
	bytes := addr.As16()
	for _, embedding := range embeddings {
		if embedding.prefix.Contains(addr) {
			at := embedding.offset
			all = append(all, netip.AddrFrom4([4]byte(bytes[at:at+4])))
		}
	}
	return all
}

// embeddings are the prefixes of addresses that hold an IPv4 address, and where it is.
var embeddings = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("::/96"), 12},          // compatible
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64 in one network
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4
}
