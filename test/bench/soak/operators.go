// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/corbel-run/corbel/test/bench/measure"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// operators are processes that elect a leader. One that ends is replaced; one that ends
// by itself, for another reason than a lost leadership, is a death.
type operators struct {
	start func() (*measure.Process, error)

	mu      sync.Mutex
	running []*measure.Process
	killed  map[*measure.Process]bool
	ended   bool
	version int // how often all were killed
	deaths  []string
	errs    []error
	watches sync.WaitGroup
}

// startOperators starts so many operators with the order of the time.
func startOperators(ctx context.Context, n int, order func() subject.Order) (*operators, error) {
	o := &operators{killed: map[*measure.Process]bool{}, start: func() (*measure.Process, error) {
		return measure.ConnectTo(ctx, report.Corbel, "", order())
	}}
	for range n {
		if err := o.add(); err != nil {
			o.end()
			return nil, err
		}
	}
	return o, nil
}

func (o *operators) add() error {
	o.mu.Lock()
	version := o.version
	o.mu.Unlock()
	p, err := o.start()
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		go p.End()
		return nil
	}
	if version != o.version { // all were killed meanwhile
		o.killed[p] = true
		_ = p.Signal(syscall.SIGKILL)
	}
	o.running = append(o.running, p)
	o.watches.Go(func() { o.watch(p) })
	return nil
}

// watch waits for the end of a process, and starts another one.
func (o *operators) watch(p *measure.Process) {
	<-p.Exited()
	code, text := p.Ending()
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	for i := range o.running {
		if o.running[i] == p {
			o.running = append(o.running[:i], o.running[i+1:]...)
			break
		}
	}
	if !o.killed[p] && code != subject.LeadershipLost {
		o.deaths = append(o.deaths, text)
	}
	delete(o.killed, p)
	o.mu.Unlock()
	// The API server may be down just now: an operator ends then, like any other program.
	for range 30 {
		err := o.add()
		if err == nil {
			return
		}
		o.mu.Lock()
		o.errs = append(o.errs, err)
		o.mu.Unlock()
	}
}

// pick returns one of those that run; nil if there is none.
func (o *operators) pick(i int) *measure.Process {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.running) == 0 {
		return nil
	}
	return o.running[i%len(o.running)]
}

// kill kills a process without a warning.
func (o *operators) kill(p *measure.Process) {
	o.mu.Lock()
	o.killed[p] = true
	o.mu.Unlock()
	_ = p.Signal(syscall.SIGKILL) // it has ended if this fails
}

// killAll kills all processes, which are replaced, and those that are being started.
func (o *operators) killAll() {
	o.mu.Lock()
	o.version++
	running := slices.Clone(o.running)
	o.mu.Unlock()
	for _, p := range running {
		_ = p.Signal(syscall.SIGCONT)
		o.kill(p)
	}
}

// end ends all processes, and returns those that had ended by themselves.
func (o *operators) end() (deaths []string) {
	o.mu.Lock()
	o.ended = true
	running := o.running
	o.mu.Unlock()
	for _, p := range running {
		_ = p.Signal(syscall.SIGCONT)
		p.End()
	}
	o.watches.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.errs) > 30 {
		o.deaths = append(o.deaths, fmt.Sprintf("operators did not start %d times: %v", len(o.errs), o.errs[0]))
	}
	return o.deaths
}
