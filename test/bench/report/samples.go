// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import "slices"

// Samples are several times that the same was done.
type Samples []Sample

// Seconds is the median of the time it took; missed means that at least half of
// the times it did not happen at all.
func (s Samples) Seconds() (seconds float64, missed bool) {
	count := 0
	for _, sample := range s {
		if sample.Missed {
			count++
		}
	}
	return median(s, func(s Sample) float64 { return s.Seconds }), len(s) > 0 && 2*count >= len(s)
}

// Requests is the median of the number of requests.
func (s Samples) Requests() float64 {
	return median(s, func(s Sample) float64 { return float64(s.Total) })
}

// Writes is the median of the number of requests that change something.
func (s Samples) Writes() float64 {
	return median(s, func(s Sample) float64 { return float64(s.Writes) })
}

// Events is the median of the number of events.
func (s Samples) Events() float64 {
	return median(s, func(s Sample) float64 { return float64(s.Events) })
}

// CPU is the median of the processor time, in seconds.
func (s Samples) CPU() float64 { return median(s, func(s Sample) float64 { return s.CPUSeconds }) }

// Peak is the median of the peak of the heap, in bytes.
func (s Samples) Peak() float64 {
	return median(s, func(s Sample) float64 { return float64(s.PeakHeap) })
}

// Heap is the median of the heap without garbage, in bytes.
func (s Samples) Heap() float64 { return median(s, func(s Sample) float64 { return float64(s.Heap) }) }

// Goroutines is the median of their number.
func (s Samples) Goroutines() float64 {
	return median(s, func(s Sample) float64 { return float64(s.Goroutines) })
}

// median is zero if there are no samples.
func median(samples Samples, of func(Sample) float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	values := make([]float64, 0, len(samples))
	for _, sample := range samples {
		values = append(values, of(sample))
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
