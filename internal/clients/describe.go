// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// described is an error with words that stay the same as long as the error does.
type described struct {
	text string
	err  error
}

func (d *described) Error() string { return d.text }
func (d *described) Unwrap() error { return d.err }

// describe leaves out ports and times that are others at every attempt: the
// message stands in the status of components, which must not change for nothing.
func describe(err error) error {
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return &described{"the certificate of the server has expired or is not valid yet", err}
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		problem := "the name cannot be resolved at the moment"
		if e.IsNotFound {
			problem = "there is no such name"
		}
		return &described{fmt.Sprintf("look up %s: %s", e.Name, problem), err}
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Addr != nil && e.Err != nil {
		return &described{fmt.Sprintf("%s %s: %v", e.Op, e.Addr, e.Err), err}
	}
	return err
}
