// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/cluster"
)

func loopbackToo(context.Context, string, netip.AddrPort) error { return nil }

func TestMessagesDoNotChangeWithEveryAttempt(t *testing.T) {
	around := func(err error) error {
		return fmt.Errorf("probe: %w", &url.Error{Op: "Get", URL: "https://a", Err: err})
	}
	address := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: port} }
	for want, make := range map[string]func(attempt int) error{
		"read 203.0.113.7:6443: connection reset": func(attempt int) error {
			return &net.OpError{Op: "read", Net: "tcp", Source: address(30000 + attempt), Addr: address(6443), Err: errors.New("connection reset")}
		},
		"look up api.example.com: the name cannot be resolved at the moment": func(attempt int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "api.example.com", Err: fmt.Sprintf("read udp 127.0.0.1:%d: timeout", attempt), IsTimeout: true}}
		},
		"look up api.example.com: there is no such name": func(int) error {
			return &net.DNSError{Name: "api.example.com", IsNotFound: true}
		},
		"the certificate of the server has expired or is not valid yet": func(int) error {
			return x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired, Detail: time.Now().String()}
		},
		"dial 127.0.0.1:443: connections to the address 127.0.0.1 are not allowed: no": func(int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443},
				Err: &cluster.AddressDeniedError{Address: netip.MustParseAddrPort("127.0.0.1:443"), Err: errors.New("no")}}
		},
	} {
		for attempt := range 2 {
			err := describe(around(make(attempt)))
			if _, ok := errors.AsType[*url.Error](err); err.Error() != want || !ok {
				t.Errorf("got %q, want %q", err, want)
			}
		}
	}
	plain := errors.New("plain")
	if err := describe(plain); err != plain {
		t.Errorf("got %v", err)
	}
}
