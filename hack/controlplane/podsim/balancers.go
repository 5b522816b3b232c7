// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// balancers gives Services of type LoadBalancer an address.
type balancers struct {
	client  kubernetes.Interface
	lister  corelisters.ServiceLister
	address *pool

	mutex sync.Mutex
	given map[string]given // by the Service's key
}

type given struct {
	uid     types.UID
	address string
}

func newBalancers(s *simulator) *balancers {
	return &balancers{
		client: s.client, lister: s.informers.Core().V1().Services().Lister(),
		address: newPool(balancerAddresses), given: map[string]given{},
	}
}

func (b *balancers) handle(ctx context.Context, key string) (time.Duration, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, nil // no key that an informer made
	}
	service, err := b.lister.Services(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		b.takeBack(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ingress := service.Status.LoadBalancer.Ingress
	switch {
	case service.Spec.Type != corev1.ServiceTypeLoadBalancer:
		b.takeBack(key)
		if len(ingress) == 0 {
			return 0, nil
		}
		ingress = nil
	case len(ingress) > 0:
		b.reserve(key, service.UID, ingress[0].IP)
		return 0, nil
	default:
		ingress = []corev1.LoadBalancerIngress{{
			IP:     b.assign(key, service.UID),
			IPMode: new(corev1.LoadBalancerIPModeVIP),
		}}
	}
	service = service.DeepCopy()
	service.Status.LoadBalancer.Ingress = ingress
	_, err = b.client.CoreV1().Services(namespace).UpdateStatus(ctx, service, metav1.UpdateOptions{})
	return 0, err
}

// assign returns the Service's address, the same one however often it is asked.
func (b *balancers) assign(key string, uid types.UID) string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if old, ok := b.given[key]; ok {
		if old.uid == uid {
			return old.address
		}
		b.address.free(old.address)
	}
	b.given[key] = given{uid: uid, address: b.address.allocate()}
	return b.given[key].address
}

// reserve remembers an address that the Service has already.
func (b *balancers) reserve(key string, uid types.UID, address string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.address.reserve(address)
	b.given[key] = given{uid: uid, address: address}
}

func (b *balancers) takeBack(key string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.address.free(b.given[key].address)
	delete(b.given, key)
}
