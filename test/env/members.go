// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// member is one of several API servers with its member of etcd.
type member struct {
	n, port         int
	etcd, apiserver *process
}

// EtcdName names the member of etcd of that number for Cut. The first has number 1.
func EtcdName(n int) string { return "etcd-" + strconv.Itoa(n) }

// ServerName names the API server of that number for Cut.
func ServerName(n int) string { return "kube-apiserver-" + strconv.Itoa(n) }

func linkSocket(n int) string { return fmt.Sprintf("link-%d.sock", n) }

// startMembers starts the members of etcd, which reach each other, and are reached by the API servers, over links.
func (e *Environment) startMembers() error {
	servers := e.options.Servers
	e.network, e.more = newNetwork(), nil
	ports, peers, cluster, addresses := make([]int, servers), make([]string, servers), make([]string, servers), map[string]string{}
	for i := range servers {
		var err error
		if ports[i], err = freePort(); err != nil {
			return err
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		peers[i] = "http://" + listener.Addr().String()
		cluster[i], addresses[peers[i]] = fmt.Sprintf("%s=%s", EtcdName(i+1), peers[i]), EtcdName(i+1)
		e.network.link(listener, EtcdName(i+1), "tcp", "127.0.0.1:"+strconv.Itoa(ports[i]), peerIn(addresses))
		socket, err := net.Listen("unix", e.file(linkSocket(i+1)))
		if err != nil {
			return err
		}
		e.network.link(socket, EtcdName(i+1), "unix", e.file(etcdSocket(i+1)), func([]byte) string { return ServerName(i + 1) })
	}
	for i := range servers {
		if i > 0 {
			e.more = append(e.more, &member{n: i + 1})
		}
		e.etcdArgs = append(e.etcdArgs, []string{
			"--name=" + EtcdName(i+1),
			"--data-dir=" + e.file(EtcdName(i+1)),
			"--listen-client-urls=unix://" + e.file(etcdSocket(i+1)),
			"--advertise-client-urls=http://127.0.0.1:0",
			"--listen-peer-urls=http://127.0.0.1:" + strconv.Itoa(ports[i]),
			"--initial-advertise-peer-urls=" + peers[i],
			"--initial-cluster=" + strings.Join(cluster, ","),
			"--quota-backend-bytes=8589934592",
			"--log-level=error",
		})
	}
	return e.runMembers()
}

func (e *Environment) runMembers() (err error) {
	if e.etcd, err = e.start("etcd", e.etcdArgs[0]...); err != nil {
		return err
	}
	for i, m := range e.more {
		if m.etcd, err = e.start("etcd", e.etcdArgs[i+1]...); err != nil {
			return err
		}
	}
	return nil
}

// startMoreServers starts the API servers but the first.
func (e *Environment) startMoreServers(ctx context.Context) (err error) {
	for _, m := range e.more {
		if m.port == 0 {
			if m.port, err = freePort(); err != nil {
				return err
			}
		}
		if m.apiserver, err = e.start("kube-apiserver", e.apiserverArgs(m.n, m.port)...); err != nil {
			return err
		}
	}
	for _, m := range e.more {
		err := e.await(ctx, ServerName(m.n)+" to be ready", func(ctx context.Context) error { return e.getFrom(ctx, m.port, "/readyz", nil) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Environment) moreEtcds() (all []*process) {
	for _, m := range e.more {
		all = append(all, m.etcd)
	}
	return all
}

func (e *Environment) moreServers() (all []*process) {
	for _, m := range e.more {
		all = append(all, m.apiserver)
	}
	return all
}

// Servers is the number of API servers.
func (e *Environment) Servers() int { return e.options.Servers }

// ServerConfig is ConfigFor for the API server of that number.
func (e *Environment) ServerConfig(n int, user string, groups ...string) (*rest.Config, error) {
	config, err := e.ConfigFor(user, groups...)
	if err == nil && n > 1 {
		config.Host = host(e.more[n-2].port)
	}
	return config, err
}

// Cut cuts the connections between two programs; bytes that are sent arrive after Heal. It needs several API servers, as do
// Isolate, Heal, EtcdLeader, BackUp and RestoreBackup.
func (e *Environment) Cut(a, b string) { e.network.set(a, b, true) }

// Isolate cuts the connections of a member of etcd to all other members.
func (e *Environment) Isolate(n int) {
	for i := range e.options.Servers {
		if i+1 != n {
			e.Cut(EtcdName(n), EtcdName(i+1))
		}
	}
}

// Heal heals all connections.
func (e *Environment) Heal() { e.network.heal() }

// EtcdLeader returns the number of the member of etcd that leads.
func (e *Environment) EtcdLeader(ctx context.Context) (int, error) {
	var errs []error
	for i := range e.options.Servers {
		answer, err := e.askEtcd(ctx, i+1, "/v3/maintenance/status", []byte("{}"))
		var status struct {
			Header struct {
				Member string `json:"member_id"`
			}
			Leader string
		}
		if err == nil {
			err = json.Unmarshal(answer, &status)
		}
		if err == nil && status.Leader == status.Header.Member {
			return i + 1, nil
		}
		errs = append(errs, err)
	}
	return 0, errors.Join(errors.New("no member of etcd leads"), errors.Join(errs...))
}

// BackUp keeps the state of etcd for RestoreBackup. It kills everything, and starts it again.
func (e *Environment) BackUp(ctx context.Context) error {
	_, err := e.whileDown(ctx, func(n int) error {
		return errors.Join(os.RemoveAll(e.file("backup-"+strconv.Itoa(n))), os.CopyFS(e.file("backup-"+strconv.Itoa(n)), os.DirFS(e.file(EtcdName(n)))))
	})
	return err
}

// RestoreBackup gives etcd the state of the last BackUp. It kills everything, and starts it again, also the controllers of
// Kubernetes: a watch of theirs that goes on from a later version would show nothing. It returns when all programs had ended.
func (e *Environment) RestoreBackup(ctx context.Context) (down time.Time, err error) {
	return e.whileDown(ctx, func(n int) error {
		return errors.Join(os.RemoveAll(e.file(EtcdName(n))), os.CopyFS(e.file(EtcdName(n)), os.DirFS(e.file("backup-"+strconv.Itoa(n)))))
	})
}

// whileDown kills all programs, calls a function for each member of etcd, and starts them again. It returns when all had ended.
func (e *Environment) whileDown(ctx context.Context, f func(n int) error) (down time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.StartTimeout)
	defer cancel()
	for _, p := range slices.Concat(e.moreServers(), []*process{e.apiserver}, e.moreEtcds(), []*process{e.etcd}) {
		p.kill()
	}
	for _, p := range e.components {
		p.kill()
	}
	down = time.Now()
	e.etcd, e.apiserver, e.components = nil, nil, nil
	for _, m := range e.more {
		m.etcd, m.apiserver = nil, nil
	}
	for i := range e.options.Servers {
		if err := f(i + 1); err != nil {
			return down, err
		}
	}
	if err := e.runMembers(); err != nil {
		return down, err
	}
	if err := e.runAPIServer(ctx); err != nil {
		return down, err
	}
	if err := e.startMoreServers(ctx); err != nil {
		return down, err
	}
	return down, e.startComponents(ctx)
}
