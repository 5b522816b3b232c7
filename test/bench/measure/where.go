// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/env"
)

// where describes the machine, as far as the system reports it.
func where(e *env.Environment, options Options) (report.Where, error) {
	d, err := discovery.NewDiscoveryClientForConfig(e.Config())
	if err != nil {
		return report.Where{}, err
	}
	version, err := d.ServerVersion()
	if err != nil {
		return report.Where{}, err
	}
	kilobytes, _ := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"))
	return report.Where{
		Time:       time.Now().UTC().Truncate(time.Second),
		Revision:   options.Revision,
		Cores:      runtime.NumCPU(),
		Processor:  field("/proc/cpuinfo", "model name"),
		MemoryGiB:  (kilobytes + 1<<19) >> 20,
		System:     runtime.GOOS + "/" + runtime.GOARCH,
		Go:         runtime.Version(),
		Kubernetes: version.GitVersion,
		Load:       options.Load,
	}, nil
}

// field returns the first value of a name in a file of lines "name: value".
func field(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// LoadAverage is that of the machine in the last minute; zero where it is not known.
func LoadAverage() float64 {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var average float64
	_, _ = fmt.Sscan(string(content), &average)
	return average
}
