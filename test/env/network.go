// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
)

// network has the connections between the programs of an environment with several API servers. A connection that is
// cut holds the bytes that are sent, and delivers them once it is healed.
type network struct {
	mu     sync.Mutex
	change *sync.Cond
	cut    map[[2]string]bool // pairs of programs
	closed bool
	open   []io.Closer
}

func newNetwork() *network {
	n := &network{cut: map[[2]string]bool{}}
	n.change = sync.NewCond(&n.mu)
	return n
}

// set cuts or heals the connections between two programs.
func (n *network) set(a, b string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{a, b}], n.cut[[2]string{b, a}] = cut, cut
	n.change.Broadcast()
}

// heal heals all connections.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
	n.change.Broadcast()
}

// close ends all connections.
func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.change.Broadcast()
	for _, c := range n.open {
		_ = c.Close()
	}
}

// await waits until two programs are connected.
func (n *network) await(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.cut[[2]string{from, to}] && !n.closed {
		n.change.Wait()
	}
}

// keep closes something when the network is closed.
func (n *network) keep(c io.Closer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = append(n.open, c)
	if n.closed {
		_ = c.Close()
	}
}

// link accepts connections to a program, and passes them on to its address. From returns the program that a connection
// comes from, by the first bytes that it sends.
func (n *network) link(listener net.Listener, to, network, address string, from func(first []byte) string) {
	n.keep(listener)
	go func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			n.keep(accepted)
			go n.join(accepted, to, network, address, from)
		}
	}()
}

func (n *network) join(accepted net.Conn, to, network, address string, from func([]byte) string) {
	defer accepted.Close()
	first := make([]byte, 64<<10)
	read, err := accepted.Read(first)
	if err != nil {
		return
	}
	source := from(first[:read])
	n.await(source, to)
	target, err := net.Dial(network, address)
	if err != nil {
		return
	}
	n.keep(target)
	defer target.Close()
	if _, err := target.Write(first[:read]); err != nil {
		return
	}
	go func() {
		n.pump(accepted, target, to, source)
		_ = accepted.Close()
	}()
	n.pump(target, accepted, source, to)
}

// pump passes bytes on until either side closes the connection.
func (n *network) pump(dst io.Writer, src io.Reader, from, to string) {
	buffer := make([]byte, 64<<10)
	for {
		read, err := src.Read(buffer)
		n.await(from, to)
		if _, failed := dst.Write(buffer[:read]); err != nil || failed != nil {
			return
		}
	}
}

// peerIn returns the member of etcd that sends a request to another one: the header of the request has its address.
func peerIn(addresses map[string]string) func(first []byte) string {
	return func(first []byte) string {
		for line := range bytes.Lines(first) {
			if name, value, _ := strings.Cut(string(line), ":"); strings.EqualFold(name, "X-PeerURLs") {
				return addresses[strings.TrimSpace(value)]
			}
		}
		return ""
	}
}
