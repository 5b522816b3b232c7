// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaving is a server with one component. It answers a list, is away for the next ones, and has the component Ready then.
type leaving struct {
	*fleet
	lists int
	away  []error // what the second and later lists end with
}

var errNoServer = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

func (s *leaving) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.lists++
	if n := s.lists - 2; n >= 0 && n < len(s.away) && s.away[n] != nil {
		return s.away[n]
	}
	if err := s.fleet.List(ctx, list, options...); err != nil {
		return err
	}
	if s.lists <= len(s.away)+1 {
		for _, item := range list.(*unstructured.UnstructuredList).Items {
			unstructured.RemoveNestedField(item.Object, "status", "conditions")
		}
	}
	return nil
}

func (s *leaving) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	list := &unstructured.UnstructuredList{}
	if err := s.fleet.List(context.Background(), list, client.Limit(1)); err != nil {
		return err
	}
	unstructured.RemoveNestedField(list.Items[0].Object, "status", "conditions")
	object.(*unstructured.Unstructured).Object = list.Items[0].Object
	return nil
}

func (s *leaving) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errNoServer
}

func TestAWaitGoesOnWhenTheServerIsBack(t *testing.T) {
	server := &leaving{fleet: &fleet{size: 1}, away: []error{errNoServer, nil}}
	got := offline(t, server, served(shopResource), nil, "wait", "shop/shop-00000")
	if got.code != 0 || server.lists < 3 {
		t.Errorf("after %d lists: %+v", server.lists, got)
	}
	if text := "connection refused; it is tried again"; !strings.Contains(got.err, text) {
		t.Errorf("%q is not in %s", text, got.err)
	}
}

func TestAWaitEndsWhenTheServerRefuses(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Group: "shop.example.com", Resource: "shops"}, "", errors.New("the role was removed"))
	server := &leaving{fleet: &fleet{size: 1}, away: []error{refusal, nil}}
	got := offline(t, server, served(shopResource), nil, "wait", "shop/shop-00000")
	if got.code != CodeTrouble || !strings.Contains(got.err, "the role was removed") {
		t.Errorf("%+v", got)
	}
}
