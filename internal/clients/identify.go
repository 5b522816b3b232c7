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
	uid   types.UID
	local bool
}

var namespaces = cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}

// identify asks the target who it is. Whatever it answers but that something is
// wrong with itself shows that it is there; what it refuses is for others to report.
func (p *Pool) identify(e *entry) (identity, error) {
	ctx, cancel := context.WithTimeout(e.trust.alive, probeTimeout)
	defer cancel()
	namespace, err := e.target.Objects().Get(asProbe(ctx), namespaces, "", "kube-system")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return identity{}, fmt.Errorf("it did not answer within %s", probeTimeout)
	case isRefusal(err):
		return identity{}, nil
	case err != nil:
		return identity{}, describe(err)
	}
	id := identity{uid: namespace.GetUID()}
	if id.uid == "" || id.uid == p.options.LocalUID {
		id.local = id.uid != ""
		return id, nil
	}
	local, err := p.localUID(ctx)
	if err != nil {
		return identity{}, fmt.Errorf("find out which cluster is the local one: %w", describe(err))
	}
	id.local = id.uid == local
	return id, nil
}

// isRefusal tells whether a server understood the request and said no.
func isRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	code := status.ErrStatus.Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
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
