// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
)

// auditPolicy records requests without their bodies, or of writes with them; of
// health checks, nothing.
func auditPolicy(bodies bool) string {
	policy := `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
`
	if bodies {
		policy += `- level: Metadata
  users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
- level: RequestResponse
  verbs: ["create", "update", "patch", "delete", "deletecollection"]
`
	}
	return policy + "- level: Metadata\n"
}

// auditMarker is in the address of the requests by which AuditEvents finds the end.
const auditMarker = "corbel-env-audit-marker"

// AuditEvent is one request that the API server answered.
type AuditEvent struct {
	Time         time.Time // when the request arrived
	User         string
	Impersonated string // the user that User acted as; empty if none
	UserAgent    string
	Verb         string // get, list, watch, create, update, patch, delete, deletecollection, ...
	URI          string
	Group        string
	Resource     string // plural; empty for addresses such as /version
	Subresource  string
	Namespace    string
	Name         string // may be empty for a create
	Code         int    // the status of the answer
	// Sent and Answered are the bodies of a write, with [Options].AuditBodies.
	Sent, Answered json.RawMessage
}

// AuditEvents returns all requests that were answered before the call, in the order
// of their answers. A watch counts once, when it starts. Health checks are left out;
// requests of the control plane's own programs are not, see User. They stay in memory;
// for a long run use [Environment.AuditEventsSince].
func (e *Environment) AuditEvents(ctx context.Context) ([]AuditEvent, error) {
	// The lock keeps other callers from reading past the marker.
	e.audit.Lock()
	defer e.audit.Unlock()
	content, end, err := e.auditSince(ctx, e.audit.read, func([]byte) bool { return true })
	if err != nil {
		return nil, err
	}
	more, err := parseAuditLog(content)
	if err != nil {
		return nil, err
	}
	e.audit.read = end
	e.audit.events = append(e.audit.events, more...)
	return slices.Clip(e.audit.events), nil
}

// AuditPosition returns the place in the audit log behind all requests that were
// answered before the call.
func (e *Environment) AuditPosition(ctx context.Context) (int64, error) {
	e.audit.Lock()
	defer e.audit.Unlock()
	_, end, err := e.auditSince(ctx, e.audit.end, func([]byte) bool { return false })
	if err != nil {
		return 0, err
	}
	e.audit.end = end
	return end, nil
}

// AuditEventsSince is AuditEvents from a position, of the requests with one of the texts
// in their record, which includes the bodies. Nothing of them is kept.
func (e *Environment) AuditEventsSince(ctx context.Context, position int64, texts ...string) ([]AuditEvent, error) {
	content, _, err := e.auditSince(ctx, position, func(line []byte) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(line, []byte(text)) })
	})
	if err != nil {
		return nil, err
	}
	return parseAuditLog(content)
}

// auditSince returns the lines to keep from a position to at least the end that the log has
// at the call, and the position behind the last line. The whole log may be larger than the
// memory.
func (e *Environment) auditSince(ctx context.Context, position int64, keep func(line []byte) bool) (kept []byte, end int64, err error) {
	if !e.options.AuditLog {
		return nil, 0, errors.New("the environment was started without the option AuditLog")
	}
	marker := []byte(auditMarker + "=" + rand.String(10))
	if err := e.get(ctx, "/version?"+string(marker), nil); err != nil {
		return nil, 0, fmt.Errorf("mark the end of the audit log: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	end = position
	err = e.await(ctx, "the audit log", func(context.Context) error {
		complete := false
		err := eachLine(e.auditLog(), end, func(line []byte) {
			end += int64(len(line))
			complete = complete || bytes.Contains(line, marker)
			if keep(line) {
				kept = append(kept, line...)
			}
		})
		if err == nil && !complete {
			err = fmt.Errorf("%s lacks the last request", e.auditLog())
		}
		return err
	})
	return kept, end, err
}

// auditReader is how far the audit log was read: read is the end of what was kept, end
// the last one that was asked for.
type auditReader struct {
	sync.Mutex
	read, end int64
	events    []AuditEvent
}

// maxAuditLine bounds a line of the audit log, which may hold two bodies.
const maxAuditLine = 64 << 20

// eachLine calls f for each line of a file behind an offset. A line that is only half
// written is left for the next call.
func eachLine(path string, offset int64, f func(line []byte)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 64<<10), maxAuditLine)
	lines.Split(func(data []byte, _ bool) (int, []byte, error) {
		end := bytes.IndexByte(data, '\n') + 1
		if end == 0 {
			return 0, nil, nil
		}
		return end, data[:end], nil
	})
	for lines.Scan() {
		f(lines.Bytes())
	}
	return lines.Err()
}

func (e *Environment) auditLog() string { return filepath.Join(e.logs, "audit.log") }

// auditLine is the part that we use of audit.k8s.io/v1 Event.
type auditLine struct {
	Stage            string
	RequestURI       string
	Verb             string
	User             struct{ Username string }
	ImpersonatedUser struct{ Username string }
	UserAgent        string
	ObjectRef        struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct{ Code int }
	Received         time.Time `json:"requestReceivedTimestamp"`
	RequestObject    json.RawMessage
	ResponseObject   json.RawMessage
}

// parseAuditLog leaves out our own markers, the end of each watch, and a last line
// that is only half written.
func parseAuditLog(content []byte) ([]AuditEvent, error) {
	var events []AuditEvent
	lines := bufio.NewReader(bytes.NewReader(content))
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return events, nil
		}
		var line auditLine
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		longRunning := line.Verb == "watch"
		if longRunning != (line.Stage == "ResponseStarted") || strings.Contains(line.RequestURI, auditMarker) {
			continue
		}
		events = append(events, AuditEvent{
			Time: line.Received, User: line.User.Username, Impersonated: line.ImpersonatedUser.Username,
			UserAgent: line.UserAgent, Verb: line.Verb, URI: line.RequestURI,
			Group: line.ObjectRef.APIGroup, Resource: line.ObjectRef.Resource, Subresource: line.ObjectRef.Subresource,
			Namespace: line.ObjectRef.Namespace, Name: line.ObjectRef.Name, Code: line.ResponseStatus.Code,
			Sent: line.RequestObject, Answered: line.ResponseObject,
		})
	}
}
