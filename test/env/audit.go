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
	content, err := e.auditSince(ctx, e.audit.read)
	if err != nil {
		return nil, err
	}
	more, err := parseAuditLog(content)
	if err != nil {
		return nil, err
	}
	e.audit.read += int64(len(content))
	e.audit.events = append(e.audit.events, more...)
	return slices.Clip(e.audit.events), nil
}

// AuditPosition returns the place in the audit log behind all requests that were
// answered before the call.
func (e *Environment) AuditPosition(ctx context.Context) (int64, error) {
	e.audit.Lock()
	defer e.audit.Unlock()
	content, err := e.auditSince(ctx, e.audit.end)
	if err != nil {
		return 0, err
	}
	e.audit.end += int64(len(content))
	return e.audit.end, nil
}

// AuditEventsSince is AuditEvents from a position, of the requests with one of the texts
// in their record, which includes the bodies. Nothing of them is kept.
func (e *Environment) AuditEventsSince(ctx context.Context, position int64, texts ...string) ([]AuditEvent, error) {
	content, err := e.auditSince(ctx, position)
	if err != nil {
		return nil, err
	}
	var about []byte
	for line := range bytes.Lines(content) {
		if slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(line, []byte(text)) }) {
			about = append(about, line...)
		}
	}
	return parseAuditLog(about)
}

// auditSince returns the lines from a position to at least the end that the log has at the call.
func (e *Environment) auditSince(ctx context.Context, position int64) ([]byte, error) {
	if !e.options.AuditLog {
		return nil, errors.New("the environment was started without the option AuditLog")
	}
	marker := auditMarker + "=" + rand.String(10)
	if err := e.get(ctx, "/version?"+marker, nil); err != nil {
		return nil, fmt.Errorf("mark the end of the audit log: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var content []byte
	err := e.await(ctx, "the audit log", func(context.Context) (err error) {
		if content, err = readFrom(e.auditLog(), position); err == nil && !bytes.Contains(content, []byte(marker)) {
			err = fmt.Errorf("%s lacks the last request", e.auditLog())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// A line that is only half written is read the next time.
	return content[:bytes.LastIndexByte(content, '\n')+1], nil
}

// auditReader is how far the audit log was read: read is the end of what was kept, end
// the last one that was asked for.
type auditReader struct {
	sync.Mutex
	read, end int64
	events    []AuditEvent
}

// readFrom returns the content of a file behind an offset.
func readFrom(path string, offset int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
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
