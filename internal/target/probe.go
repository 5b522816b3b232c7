// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
)

const (
	// verifiedFor is how long a verification lasts, if no request fails: an address
	// can lead to another cluster from one moment to the next.
	//
	// Limit: the time after which the cluster of a kubeconfig is verified again.
	verifiedFor = 10 * time.Minute
	// probeTimeout bounds a probe.
	//
	// Limit: the time that a target cluster has to answer a probe.
	probeTimeout = 10 * time.Second
	// probeBase and probeLimit bound the pauses between probes, with the jitter
	// from 1 to 30 seconds.
	probeBase   = time.Second
	probeLimit  = 27 * time.Second
	probeJitter = 0.1
)

// health is the known state of a remote cluster. Its fields are guarded by the pool, except
// unresponsive.
type health struct {
	// ctx ends with the eviction of the target.
	ctx    context.Context
	cancel context.CancelFunc
	// invalidate ends the verification. It locks the pool.
	invalidate func()

	verifiedAt time.Time // zero: it must be probed
	// invalidations counts how often a verification ended early.
	invalidations int
	probing       bool
	refusal       error // why the target must not be used
	failure       error // of the last probe

	// unresponsive makes requests fail at once, because an earlier one got no answer.
	unresponsive atomic.Bool
}

func (h *health) verified() bool {
	return !h.verifiedAt.IsZero() && time.Since(h.verifiedAt) < verifiedFor
}

// invalidate ends the verification of a cluster after a failed request or the end of a
// watch. The next component that wants to use it starts a probe.
func (p *Pool) invalidate(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.health.verifiedAt = time.Time{}
	e.health.invalidations++
}

// errOtherCluster means that a target is not, or not for certain, the cluster that the
// cached properties belong to.
var errOtherCluster = errors.New("it is another cluster")

// probe starts probes in the background until one is conclusive.
func (p *Pool) probe(e *entry) {
	if e.health.probing {
		return
	}
	e.health.probing = true
	p.background.Go(func() {
		for attempt := 0; ; attempt++ {
			p.mu.Lock()
			invalidations := e.health.invalidations
			p.mu.Unlock()
			err := p.identify(e)
			if p.conclude(e, invalidations, err) {
				return
			}
			pause := backoff.Jitter(backoff.Delay(attempt, probeBase, probeLimit), probeJitter, backoff.Random())
			select {
			case <-time.After(pause):
			case <-e.health.ctx.Done():
				return
			}
		}
	})
}

// conclude records the result of a probe, and reports whether it was conclusive. The invalidations
// are the count at its start.
func (p *Pool) conclude(e *entry, invalidations int, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := e.health
	refused := err == ErrLocal || err == ErrPerhapsLocal
	switch {
	case h.ctx.Err() != nil:
		return true
	case err == errOtherCluster:
		p.evict(e)
		return true
	case err != nil && !refused:
		first := h.failure == nil
		h.failure = err
		if first { // the components can report it now
			p.wakeAll(e)
		}
		return false
	case h.invalidations != invalidations:
		h.failure = nil // it answers, but perhaps that was before
		return false
	}
	h.verifiedAt, h.probing, h.refusal, h.failure = time.Now(), false, err, nil
	h.unresponsive.Store(false)
	p.wakeAll(e)
	return true
}

var namespaces = cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}

// identify asks a remote cluster for its uid. It returns ErrLocal or ErrPerhapsLocal if
// no kubeconfig may lead there, and errOtherCluster. A request that the cluster refuses
// is an answer: the reconcile reports it.
func (p *Pool) identify(e *entry) error {
	ctx, cancel := context.WithTimeout(e.health.ctx, probeTimeout)
	defer cancel()
	uid, cached, err := uids(asProbe(ctx), e.target)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("it did not answer within %s", probeTimeout)
	case err != nil:
		return describe(err)
	case uid != cached:
		return errOtherCluster
	case uid == "":
		return nil
	case uid == p.options.LocalUID:
		return ErrLocal
	case p.local == nil:
		return nil
	}
	var local bool
	refusal := ErrLocal
	if cluster.IsAddress(uid) {
		// Its uid is not known, so the addresses are compared.
		refusal = ErrPerhapsLocal
		local, err = cluster.MayBeOne(p.local, e.target.Config())
	} else {
		var own types.UID
		own, err = p.localUID(ctx)
		local = uid == own
	}
	switch {
	case err != nil:
		return fmt.Errorf("find out which cluster is the local one: %w", describe(err))
	case local:
		return refusal
	}
	return nil
}

// uids returns the uid that the cluster has now, and the uid that the target has cached, by which
// its users know the cluster. If the uid must not be read, it is the address; it is empty if the
// request is refused otherwise.
func uids(ctx context.Context, target cluster.Target) (now, cached types.UID, err error) {
	namespace, err := target.Objects().Get(ctx, namespaces, "", "kube-system")
	switch {
	case err == nil:
		now = namespace.GetUID()
	case apierrors.IsForbidden(err):
		now = target.Address()
	case !isRefusal(err):
		return "", "", err
	}
	cached, err = target.UID(ctx)
	if isRefusal(err) {
		err = nil
	}
	return now, cached, err
}

// isRefusal reports whether a server understood the request and refused it, other than
// for having too much to do.
func isRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	code := status.ErrStatus.Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// localUID returns the uid of the local cluster, or none if it must not be read.
func (p *Pool) localUID(ctx context.Context) (types.UID, error) {
	p.mu.Lock()
	e, err := p.entry(Access{})
	p.mu.Unlock()
	if err != nil {
		return "", err
	}
	uid, err := e.target.UID(ctx)
	if isRefusal(err) {
		return "", nil
	}
	return uid, err
}

// described is an error with a text that stays the same as long as the error does.
type described struct {
	text string
	err  error
}

func (d *described) Error() string { return d.text }
func (d *described) Unwrap() error { return d.err }

// describe leaves out ports and times that differ at every attempt: the message is in the status of
// components, which must not change for nothing.
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
