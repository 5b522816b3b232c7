// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/env"
)

// audited does something as a subject, and adds to the report how long it took and which requests of
// the subject are in the audit log of the API server. The function may return the usage of a
// process; its traffic does not count.
func (b *bench) audited(ctx context.Context, scenario report.Scenario, name report.Subject, do func(context.Context) (time.Duration, subject.Usage, error)) error {
	patient, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	start, err := b.env.AuditPosition(ctx)
	if err != nil {
		return err
	}
	took, usage, err := do(patient)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", name, scenario, err)
	}
	events, err := b.env.AuditEventsSince(ctx, start, User(name))
	if err != nil {
		return err
	}
	traffic, err := trafficOf(events, User(name))
	if err != nil {
		return err
	}
	if changed := changing(traffic); isPlan(scenario) && len(changed) > 0 {
		return fmt.Errorf("%s: %s: the plan wrote: %s", name, scenario, strings.Join(changed, ", "))
	}
	b.size.Add(scenario, name, report.Sample{
		Seconds:  took.Seconds(),
		Requests: traffic.Requests, Total: traffic.Total(), Writes: traffic.Writes(), Watches: traffic.Watches, Events: traffic.Events,
		CPUSeconds: usage.CPU.Seconds(), PeakHeap: usage.PeakHeap, Heap: usage.Heap, Goroutines: usage.Goroutines,
	})
	b.Logf("%d objects, %-7s %-14s %8.3fs %6d requests %v", b.Objects, name, scenario, took.Seconds(), traffic.Total(), traffic.Requests)
	return nil
}

func isPlan(scenario report.Scenario) bool { return strings.HasPrefix(string(scenario), "plan-") }

// changing returns the requests that change something on the server. A review is a question, although
// it is sent by a POST.
func changing(traffic subject.Traffic) []string {
	var changed []string
	for request := range traffic.Requests {
		if (subject.Traffic{Requests: map[string]int{request: 1}}).Writes() > 0 && !strings.HasSuffix(request, "reviews") {
			changed = append(changed, request)
		}
	}
	return changed
}

// methods are those of the verbs of audit logs.
var methods = map[string]string{
	"create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch,
	"delete": http.MethodDelete, "deletecollection": http.MethodDelete,
}

// trafficOf counts the requests of a user in an audit log that has the bodies of writes.
func trafficOf(events []env.AuditEvent, user string) (subject.Traffic, error) {
	var traffic subject.Traffic
	for _, event := range events {
		if event.User != user {
			continue
		}
		address, err := url.ParseRequestURI(event.URI)
		if err != nil {
			return traffic, err
		}
		method, writes := methods[event.Verb]
		if !writes {
			method = http.MethodGet
		}
		if method == http.MethodDelete && isDryRun(event.Sent) {
			address.RawQuery = "dryRun=" + metav1.DryRunAll
		}
		traffic.Add(&http.Request{Method: method, URL: address})
	}
	return traffic, nil
}

// isDryRun reports whether the body of a deletion says that nothing is to be deleted.
func isDryRun(body []byte) bool {
	var options metav1.DeleteOptions
	return json.Unmarshal(body, &options) == nil && len(options.DryRun) > 0
}
