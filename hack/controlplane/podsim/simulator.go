// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// A simulator holds what its parts have in common.
type simulator struct {
	options   options
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	events    record.EventRecorder
}

// A part is a loop, its informer, and how many workers it needs.
type part struct {
	*loop
	informer cache.SharedIndexInformer
	workers  int
}

// simulate runs until the context ends.
func simulate(ctx context.Context, client kubernetes.Interface, o options) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	s := &simulator{
		options:   o,
		client:    client,
		informers: informers.NewSharedInformerFactory(client, 0),
		events:    broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "podsim"}),
	}
	if err := createStorageClasses(ctx, client); err != nil {
		return err
	}
	core := s.informers.Core().V1()
	port, err := serveLogs(ctx, core.Pods().Lister())
	if err != nil {
		return err
	}
	find, err := newLookup(core)
	if err != nil {
		return err
	}
	nodes, volumes := newNodes(s, port), newVolumes(s)
	parts := []part{
		{newLoop("Node", nodes.handle), core.Nodes().Informer(), 2},
		{newLoop("Pod", newPods(s, nodes, find).handle), core.Pods().Informer(), 16},
		{newLoop("PersistentVolumeClaim", volumes.provision), core.PersistentVolumeClaims().Informer(), 4},
		{newLoop("PersistentVolume", volumes.remove), core.PersistentVolumes().Informer(), 4},
		{newLoop("Service", newBalancers(s).handle), core.Services().Informer(), 2},
	}
	for _, p := range parts {
		if err := p.watch(p.informer); err != nil {
			return fmt.Errorf("watch objects of kind %s: %w", p.name, err)
		}
	}
	for _, name := range nodes.names {
		parts[0].queue.Add(name) // there is no event for a node that does not exist yet
	}
	s.informers.Start(ctx.Done())
	defer s.informers.Shutdown()
	s.informers.WaitForCacheSync(ctx.Done()) // handlers read from the caches

	var wait sync.WaitGroup
	for _, p := range parts {
		wait.Go(func() { p.run(ctx, p.workers) })
	}
	nodes.keepLeases(ctx)
	wait.Wait()
	return nil
}
