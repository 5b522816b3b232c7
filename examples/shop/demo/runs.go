// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// runs counts the Jobs that ever were in a namespace: hooks that did their work
// are removed, and created again to run again.
type runs struct {
	watcher watch.Interface

	mu   sync.Mutex
	jobs map[types.UID]string // the names
}

func countRuns(config *rest.Config, namespace string) (*runs, error) {
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	jobs := objects.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(namespace)
	watcher, err := jobs.Watch(context.Background(), metav1.ListOptions{}) // ended by stop
	if err != nil {
		return nil, fmt.Errorf("watch Jobs: %w", err)
	}
	r := &runs{watcher: watcher, jobs: map[types.UID]string{}}
	go func() {
		for event := range watcher.ResultChan() {
			r.record(event)
		}
	}()
	return r, nil
}

func (r *runs) record(event watch.Event) {
	if job, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.jobs[job.UID] = job.Name
	}
}

func (r *runs) countOf(name string) (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, job := range r.jobs {
		if job == name {
			count++
		}
	}
	return count
}

// stop ends the counting. It may not have started.
func (r *runs) stop() {
	if r != nil {
		r.watcher.Stop()
	}
}

// hasRun expects a Job to have run so many times by now, and says so.
func (d *demo) hasRun(ctx context.Context, job string, times int, when string) error {
	err := d.poll(ctx, func() error {
		if count := d.runs.countOf(job); count != times {
			return fmt.Errorf("Job %s ran %d times, want %d", job, count, times)
		}
		return nil
	})
	if err == nil {
		d.screen.say("Job %s has run %s: %s", job, plural(times, "time"), when)
	}
	return err
}

func plural[N int | int64](count N, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
