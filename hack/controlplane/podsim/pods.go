// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// pods leads the pods on our nodes through their lives.
type pods struct {
	client  kubernetes.Interface
	lister  corelisters.PodLister
	events  record.EventRecorder
	find    lookup
	nodes   *nodes
	timing  timing
	address *pool

	mutex sync.Mutex
	lives map[string]*life // by the pod's key
}

// A life is what the API does not store about a pod: its times to the millisecond.
type life struct {
	uid      types.UID
	past     *past
	warned   map[warning]bool
	deletion time.Time // when we saw it being deleted; zero before
	address  string    // given, whether or not the status says so yet
}

func newPods(s *simulator, n *nodes, find lookup) *pods {
	return &pods{
		client: s.client, lister: s.informers.Core().V1().Pods().Lister(), events: s.events, find: find,
		nodes: n, timing: s.options.timing, address: newPool(podAddresses), lives: map[string]*life{},
	}
}

func (p *pods) handle(ctx context.Context, key string) (time.Duration, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, nil // no key that an informer made
	}
	pod, err := p.lister.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		p.forgetPod(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	host, ok := p.nodes.ours(pod.Spec.NodeName)
	if !ok {
		return 0, nil
	}
	now := time.Now()
	l := p.remember(key, pod, now)
	if pod.DeletionTimestamp != nil {
		return p.terminate(ctx, pod, l, now)
	}
	ips := addresses{host: host, pod: l.address}
	if pod.Spec.HostNetwork {
		ips.pod = host
	}
	status, again, warnings := nextStatus(pod, p.timing, l.past, now, ips, p.find)
	for _, w := range warnings {
		if !l.warned[w] {
			l.warned[w] = true
			p.events.Event(pod, corev1.EventTypeWarning, w.reason, w.message)
		}
	}
	return again, p.write(ctx, pod, status)
}

// terminate waits for the containers to end, then lets the pod go.
func (p *pods) terminate(ctx context.Context, pod *corev1.Pod, l life, now time.Time) (time.Duration, error) {
	if left := behaviourOf(pod, p.timing).terminate - now.Sub(l.deletion); left > 0 {
		return left, nil
	}
	if err := p.write(ctx, pod, terminatedStatus(pod, now)); err != nil {
		return 0, err
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 && len(pod.Finalizers) > 0 {
		return 0, nil // it is up to the finalizers
	}
	return 0, p.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
}

// write stores a status if it is a new one, and reports containers that cannot start.
func (p *pods) write(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	changed := pod.DeepCopy()
	changed.Status = status
	if _, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for _, problem := range newProblems(pod.Status, status) {
		p.events.Event(pod, corev1.EventTypeWarning, "Failed", problem)
	}
	return nil
}

// newProblems returns what the containers of the new status wait for, that did not
// in the old one, and that does not end by itself.
func newProblems(old, status corev1.PodStatus) []string {
	problems := func(status corev1.PodStatus) (all []string) {
		for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
			for _, c := range list {
				switch w := c.State.Waiting; {
				case w == nil || w.Message == "":
				case w.Reason == configError:
					all = append(all, "Error: "+w.Message)
				default:
					all = append(all, "container "+c.Name+": "+w.Reason+": "+w.Message)
				}
			}
		}
		return all
	}
	known := map[string]bool{}
	for _, problem := range problems(old) {
		known[problem] = true
	}
	var fresh []string
	for _, problem := range problems(status) {
		if !known[problem] {
			fresh = append(fresh, problem)
		}
	}
	return fresh
}

// remember returns the record of the pod, and creates it if there is none.
func (p *pods) remember(key string, pod *corev1.Pod, now time.Time) life {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	l := p.lives[key]
	if l == nil || l.uid != pod.UID {
		if l != nil {
			p.address.free(l.address)
		}
		bound := now
		if pod.Status.StartTime != nil { // it started before we did
			bound = pod.Status.StartTime.Time
		}
		l = &life{uid: pod.UID, past: pastOf(pod, bound), warned: map[warning]bool{}, address: pod.Status.PodIP}
		if l.address == "" {
			l.address = p.address.allocate()
		} else {
			p.address.reserve(l.address)
		}
		p.lives[key] = l
	}
	if pod.DeletionTimestamp != nil && l.deletion.IsZero() {
		l.deletion = now
	}
	return *l
}

func (p *pods) forgetPod(key string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if l := p.lives[key]; l != nil {
		p.address.free(l.address)
		delete(p.lives, key)
	}
}
