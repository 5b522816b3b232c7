// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Usage is what a subject has used since it was asked before.
type Usage struct {
	Traffic
	// CPU is the time on all processors, in user and system mode.
	CPU time.Duration
	// PeakHeap is the most that the heap held, garbage included, in bytes.
	PeakHeap uint64
	// PeakRSS is the most memory that the process held since the last time, in bytes; zero if the system does not say so.
	PeakRSS uint64
	// Heap is what the heap holds without garbage, in bytes; zero if not asked for.
	Heap uint64
	// Goroutines is how many there are now.
	Goroutines int
}

// heapMetric is the memory of objects on the heap, dead ones included that are not
// swept yet. Reading it does not stop the program.
const heapMetric = "/memory/classes/heap/objects:bytes"

// sampling is how often the heap is looked at.
const sampling = 50 * time.Millisecond

type meter struct {
	cpu  time.Duration // at the last read
	peak atomic.Uint64
}

// newMeter samples the heap until the context ends.
func newMeter(ctx context.Context) *meter {
	m := &meter{}
	go func() {
		ticker := time.NewTicker(sampling)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				m.peak.Store(max(m.peak.Load(), heap()))
			}
		}
	}()
	return m
}

func (m *meter) read(collect bool) Usage {
	cpu := processorTime()
	usage := Usage{CPU: cpu - m.cpu, PeakHeap: max(m.peak.Swap(0), heap()), Goroutines: runtime.NumGoroutine()}
	m.cpu, usage.PeakRSS = cpu, peakRSS()
	if collect {
		runtime.GC()
		runtime.GC() // what the first one found unused, finalizers and pools included
		usage.Heap = heap()
		m.cpu = processorTime() // the collection is our doing
	}
	return usage
}

// startProfile starts a profile of the processor time.
func (s *service) startProfile(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	s.endProfile = func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}
	return nil
}

// profile writes what the heap holds, and where it was allocated, if there is a path.
func profile(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}

func heap() uint64 {
	sample := []metrics.Sample{{Name: heapMetric}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peakRSS returns the most memory that the process held, and starts to measure it anew.
func peakRSS() uint64 {
	content, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(content), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kibibytes, _ := strconv.ParseUint(fields[0], 10, 64)      // 0 if it is no number
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // otherwise the peak is that since the start
	return kibibytes << 10
}

// processorTime is what this process has used since it started.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // fails only if its arguments are wrong
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
