// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// identity is what a probe finds out.
type identity struct {
	// refusal is why no kubeconfig may lead there: it is the local cluster, or may be.
	refusal error
	// changed tells that it is not, or not for certain, the cluster that the target
	// remembers things about.
	changed bool
}

var namespaces = cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}

// identify asks the target who it is. Whatever it answers but that something is
// wrong with itself shows that it is there; what it refuses is for others to report.
func (p *Pool) identify(e *entry) (identity, error) {
	ctx, cancel := context.WithTimeout(e.trust.alive, probeTimeout)
	defer cancel()
	uid, remembered, err := uids(asProbe(ctx), e.target)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return identity{}, fmt.Errorf("it did not answer within %s", probeTimeout)
	case err != nil:
		return identity{}, describe(err)
	case uid != remembered:
		return identity{changed: true}, nil
	case uid == "":
		return identity{}, nil
	case uid == p.options.LocalUID:
		return identity{refusal: ErrLocal}, nil
	case cluster.IsAddress(uid):
		return p.compareAddress(e)
	}
	local, err := p.localUID(ctx)
	switch {
	case err != nil:
		return identity{}, fmt.Errorf("find out which cluster is the local one: %w", describe(err))
	case uid == local:
		return identity{refusal: ErrLocal}, nil
	}
	return identity{}, nil
}

// compareAddress finds out whether a cluster that is known by its address only may be
// the local one. It is compared with the address of that one: their uids cannot be.
func (p *Pool) compareAddress(e *entry) (identity, error) {
	if p.local == nil {
		return identity{}, nil
	}
	one, err := cluster.MayBeOne(p.local, e.target.Config())
	switch {
	case err != nil:
		return identity{}, fmt.Errorf("find out which cluster is the local one: %w", err)
	case one:
		return identity{refusal: ErrPerhapsLocal}, nil
	}
	return identity{}, nil
}

// uids returns the uid that the cluster tells now, and the one that the target has told
// since it was read first, by which its users know the cluster. If the uid may not be
// read, it is the address; what is refused otherwise is empty.
func uids(ctx context.Context, target cluster.Target) (now, remembered types.UID, err error) {
	namespace, err := target.Objects().Get(ctx, namespaces, "", "kube-system")
	switch {
	case err == nil:
		now = namespace.GetUID()
	case apierrors.IsForbidden(err):
		now = target.Address()
	case !isRefusal(err):
		return "", "", err
	}
	remembered, err = target.UID(ctx)
	if isRefusal(err) {
		err = nil
	}
	return now, remembered, err
}

// isRefusal tells whether a server understood the request and said no, and not just
// that it has too much to do.
func isRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	code := status.ErrStatus.Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// localUID returns an empty uid if it is not told to us.
func (p *Pool) localUID(ctx context.Context) (types.UID, error) {
	if p.local == nil {
		return "", nil
	}
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
