// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history is what happened to the Jobs and the Deployments of a namespace. Resource
// versions show what was first, because all objects are in one etcd.
type history struct {
	mu        sync.Mutex
	jobs      map[types.UID]string // every Job that there ever was
	completes map[string]int64     // the resource version, by the name of the Job
	deletions []int64              // resource versions
}

// watchHistory follows a namespace, until the end of the test.
func watchHistory(b *bed) *history {
	b.Helper()
	h := &history{jobs: map[types.UID]string{}, completes: map[string]int64{}}
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &appsv1.DeploymentList{}} {
		watcher, err := b.client.Watch(b.Context(), list, client.InNamespace(b.namespace))
		b.check(err)
		b.Cleanup(watcher.Stop)
		go func() {
			for event := range watcher.ResultChan() {
				h.note(event)
			}
		}()
	}
	return h
}

func (h *history) note(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok {
		return
	}
	version, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	job, isJob := object.(*batchv1.Job)
	switch {
	case isJob:
		h.jobs[job.UID] = job.Name
		if job.Status.CompletionTime != nil && h.completes[job.Name] == 0 {
			h.completes[job.Name] = version
		}
	case event.Type == watch.Deleted:
		h.deletions = append(h.deletions, version)
	}
}

// runs counts the Jobs by their names.
func (h *history) runs() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	runs := map[string]int{}
	for name := range maps.Values(h.jobs) {
		runs[name]++
	}
	return runs
}

// completed returns when a Job was done first; 0 means never.
func (h *history) completed(job string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.completes[job]
}

// firstDeletion returns when the first Deployment was deleted; 0 means never.
func (h *history) firstDeletion() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.deletions) == 0 {
		return 0
	}
	return slices.Min(h.deletions)
}
