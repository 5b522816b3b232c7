// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/netip"
)

// DenyInternal is the [DialPolicy] for targets that somebody else than the
// operator's owner names. It refuses the machine itself, the link it is on, what
// is no address of a server, and the services by which clouds hand out
// credentials. It allows private networks: that is where many clusters are.
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

// embeddings are the prefixes whose addresses hold an IPv4 address, and where.
var embeddings = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("::/96"), 12},          // compatible
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64 in one network
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4
}
