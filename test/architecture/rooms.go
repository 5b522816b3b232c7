// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"slices"
	"strings"
)

// Kind says what a room may depend on.
type Kind string

const (
	// Open rooms may import everything that their floor allows.
	Open Kind = "open"
	// Data rooms import from a list and get the time as a parameter, unless Clock is set.
	Data Kind = "data"
	// Closed rooms are pure: nothing of ours that they reach, however
	// indirectly, can talk to a server, the system or the clock.
	Closed Kind = "closed"
	// Support rooms help tests; what is shipped must not import them.
	Support Kind = "support"
)

// Room is the place of a package in the layers of the repository, or of all
// packages below a folder if Path ends in "/...".
type Room struct {
	Path  string
	Floor int
	Kind  Kind
	// Beside lists the rooms that may be imported although they are not below.
	Beside []string
	// External lists what a data room may import beyond dataExternal.
	External []string
	// Clock lets a data room read the time.
	Clock bool
}

// supportFloor is above everything: tests may use everything.
const supportFloor = 7

// folders are the folders at the root, by what may import what: those of one line import each other, and those before them.
var folders = [][]string{{"api"}, {"pkg", "internal"}, {"test"}, {"cmd", "examples"}, {"hack"}}

// rooms are all rooms. A package of the modules in go.work without a room fails the test.
var rooms = []Room{
	// It only describes the module.
	{Path: ".", Floor: 0, Kind: Data},
	{Path: "api/v1alpha1", Floor: 0, Kind: Data},
	{Path: "pkg/types", Floor: 0, Kind: Data},
	{Path: "internal/vocabulary", Floor: 0, Kind: Data, Beside: []string{"api/v1alpha1"}},
	{Path: "internal/sentence", Floor: 0, Kind: Data},

	{Path: "pkg/conditions", Floor: 1, Kind: Data, Clock: true},
	{Path: "pkg/result", Floor: 1, Kind: Data, Beside: []string{"pkg/conditions", "internal/backoff"}},
	{Path: "pkg/status", Floor: 1, Kind: Data, Beside: []string{"internal/guard"}, External: []string{
		"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/...",
		"github.com/fluxcd/cli-utils/pkg/kstatus/status",
		"cel.dev/cel-go/...",
	}},
	{Path: "internal/backoff", Floor: 1, Kind: Data, External: []string{"math/rand/v2"}},
	{Path: "internal/report", Floor: 0, Kind: Data},
	{Path: "internal/rights", Floor: 1, Kind: Open},
	{Path: "internal/digest", Floor: 1, Kind: Data},
	{Path: "internal/difference", Floor: 1, Kind: Data},
	{Path: "internal/owned", Floor: 1, Kind: Data},
	// Data, so that nothing that a kubeconfig says can make it open a file or a connection.
	{Path: "internal/kubeconfig", Floor: 1, Kind: Data, External: []string{
		"crypto/tls", "crypto/x509", "net/url", "go.yaml.in/yaml/v3", "sigs.k8s.io/yaml",
		"k8s.io/client-go/tools/clientcmd/api/v1",
	}},
	{Path: "internal/jsonsize", Floor: 1, Kind: Data},
	{Path: "internal/gzipped", Floor: 1, Kind: Open},
	{Path: "internal/lease", Floor: 1, Kind: Data},
	{Path: "internal/pods", Floor: 1, Kind: Data},
	{Path: "internal/guard", Floor: 1, Kind: Open},
	{Path: "internal/untyped", Floor: 1, Kind: Open},
	{Path: "internal/metrics", Floor: 1, Kind: Open},
	{Path: "internal/confidential", Floor: 1, Kind: Open},
	{Path: "internal/trace", Floor: 1, Kind: Open, Beside: []string{"internal/confidential"}},
	{Path: "pkg/reconciler/internal/policy", Floor: 1, Kind: Closed},
	{Path: "pkg/reconciler/internal/definition", Floor: 1, Kind: Closed},
	{Path: "pkg/reconciler/internal/plan", Floor: 1, Kind: Closed, Beside: []string{"pkg/reconciler/internal/policy"}},
	{Path: "pkg/reconciler/internal/shared", Floor: 1, Kind: Closed, Beside: []string{"pkg/reconciler/internal/plan"}},

	{Path: "pkg/patch", Floor: 2, Kind: Open},
	{Path: "pkg/steps", Floor: 2, Kind: Open, Beside: []string{"pkg/patch"}},
	{Path: "internal/cluster", Floor: 2, Kind: Open},
	{Path: "internal/requirement", Floor: 2, Kind: Open},
	{Path: "internal/target", Floor: 2, Kind: Open, Beside: []string{"internal/cluster"}},
	{Path: "internal/renders", Floor: 2, Kind: Open, Beside: []string{"internal/cluster"}},
	{Path: "internal/events", Floor: 2, Kind: Open},
	{Path: "internal/informer", Floor: 2, Kind: Open, Beside: []string{"internal/cluster"}},
	{Path: "internal/inventory", Floor: 2, Kind: Open},
	{Path: "internal/revisions", Floor: 2, Kind: Open},
	{Path: "internal/preview", Floor: 2, Kind: Open},
	{Path: "pkg/manifests/internal/subprocess", Floor: 2, Kind: Open},
	{Path: "internal/document", Floor: 2, Kind: Open},
	{Path: "pkg/manifests/internal/files", Floor: 2, Kind: Open},
	{Path: "pkg/manifests/internal/cache", Floor: 2, Kind: Open},
	{Path: "pkg/reconciler/internal/desired", Floor: 2, Kind: Open, Beside: []string{"internal/cluster"}},
	{Path: "pkg/reconciler/internal/observe", Floor: 2, Kind: Open, Beside: []string{"internal/cluster", "pkg/reconciler/internal/watch"}},
	{Path: "pkg/reconciler/internal/watch", Floor: 2, Kind: Open, Beside: []string{"internal/cluster", "internal/informer"}},
	{Path: "pkg/reconciler/internal/execute", Floor: 2, Kind: Open, Beside: []string{
		"internal/cluster", "pkg/reconciler/internal/observe", "internal/events",
	}},

	{Path: "pkg/reconciler", Floor: 3, Kind: Open},
	{Path: "pkg/manifests", Floor: 3, Kind: Open},
	{Path: "pkg/manifests/internal/excess", Floor: 2, Kind: Data},
	{Path: "pkg/manifests/internal/timeout", Floor: 2, Kind: Open, Beside: []string{"internal/renders"}},
	{Path: "pkg/manifests/internal/lookup", Floor: 3, Kind: Open, Beside: []string{"pkg/manifests"}},
	{Path: "pkg/manifests/internal/templates", Floor: 3, Kind: Open, Beside: []string{"pkg/manifests"}},
	{Path: "pkg/manifests/internal/convert", Floor: 3, Kind: Open, Beside: []string{"pkg/manifests"}},
	{Path: "pkg/manifests/gotemplate", Floor: 3, Kind: Open, Beside: []string{
		"pkg/manifests", "pkg/manifests/internal/timeout", "pkg/manifests/internal/lookup", "pkg/manifests/internal/templates", "pkg/manifests/internal/convert",
	}},
	{Path: "pkg/manifests/helm", Floor: 3, Kind: Open, Beside: []string{
		"pkg/manifests", "pkg/manifests/internal/timeout", "pkg/manifests/internal/lookup", "pkg/manifests/internal/templates", "pkg/manifests/internal/convert",
	}},
	{Path: "pkg/manifests/kustomize", Floor: 3, Kind: Open, Beside: []string{
		"pkg/manifests", "pkg/manifests/gotemplate", "pkg/manifests/internal/timeout",
	}},
	{Path: "pkg/manifests/krm", Floor: 3, Kind: Open, Beside: []string{"pkg/manifests", "pkg/manifests/internal/convert"}},
	{Path: "pkg/manifests/transform", Floor: 3, Kind: Open, Beside: []string{"pkg/manifests", "pkg/manifests/internal/convert"}},
	{Path: "pkg/summarize", Floor: 3, Kind: Open},

	{Path: "internal/session", Floor: 4, Kind: Open},
	{Path: "pkg/lifecycle", Floor: 4, Kind: Open, Beside: []string{"internal/session"}},
	{Path: "pkg/lifecycle/external", Floor: 4, Kind: Open, Beside: []string{"pkg/lifecycle"}},
	{Path: "internal/helmrelease", Floor: 4, Kind: Open},
	{Path: "pkg/changes", Floor: 4, Kind: Open, Beside: []string{"pkg/lifecycle"}},

	// Rooms of pkg/component: what does not depend on the type of a component.
	{Path: "pkg/component/internal/conclude", Floor: 4, Kind: Open, Beside: []string{
		"internal/session", "pkg/component/internal/identity", "pkg/component/internal/revision", "pkg/component/internal/targets", "pkg/component/internal/telemetry", "pkg/component/internal/verdict",
	}},
	{Path: "pkg/component/internal/fleet", Floor: 4, Kind: Open, Beside: []string{"pkg/component/internal/identity", "pkg/component/internal/revision", "pkg/component/internal/telemetry", "pkg/component/internal/verdict"}},
	{Path: "pkg/component/internal/identity", Floor: 4, Kind: Open},
	{Path: "pkg/component/internal/outputs", Floor: 4, Kind: Open, Beside: []string{"pkg/component/internal/identity"}},
	{Path: "pkg/component/internal/record", Floor: 4, Kind: Open, Beside: []string{"pkg/component/internal/identity", "pkg/component/internal/revision", "pkg/component/internal/targets", "pkg/component/internal/telemetry", "pkg/component/internal/verdict"}},
	{Path: "pkg/component/internal/references", Floor: 4, Kind: Open},
	{Path: "pkg/component/internal/rendering", Floor: 4, Kind: Open, Beside: []string{"pkg/component/internal/identity", "pkg/component/internal/outputs", "pkg/component/internal/telemetry", "pkg/component/internal/verdict"}},
	{Path: "pkg/component/internal/revision", Floor: 4, Kind: Open, Beside: []string{"internal/helmrelease", "pkg/component/internal/identity", "pkg/component/internal/references", "pkg/component/internal/rendering", "pkg/component/internal/targets", "pkg/component/internal/verdict"}},
	{Path: "pkg/component/internal/targets", Floor: 4, Kind: Open, Beside: []string{"pkg/component/internal/verdict"}},
	{Path: "pkg/component/internal/telemetry", Floor: 4, Kind: Open, Beside: []string{"pkg/component/internal/identity", "pkg/component/internal/verdict"}},
	{Path: "pkg/component/internal/trigger", Floor: 4, Kind: Open},
	{Path: "pkg/component/internal/verdict", Floor: 4, Kind: Open},
	{Path: "pkg/component", Floor: 5, Kind: Open},

	{Path: "internal/planview", Floor: 5, Kind: Open, Beside: []string{"pkg/component"}},
	{Path: "pkg/operator", Floor: 6, Kind: Open},
	{Path: "internal/deploy", Floor: 4, Kind: Open},
	{Path: "internal/rbacrules", Floor: 4, Kind: Open},

	// The module of the command.
	{Path: "cmd/corbel/internal/helmrecord", Floor: 5, Kind: Open},
	{Path: "cmd/corbel/internal/scaffold/values", Floor: 4, Kind: Open},
	{Path: "cmd/corbel/internal/scaffold", Floor: 5, Kind: Open, Beside: []string{"pkg/component"}},
	{Path: "cmd/corbel/internal/command/remote", Floor: 5, Kind: Open},
	{Path: "cmd/corbel/internal/inspect", Floor: 6, Kind: Open},
	{Path: "cmd/corbel/internal/steering", Floor: 6, Kind: Open, Beside: []string{"cmd/corbel/internal/inspect"}},
	{Path: "cmd/corbel/internal/why", Floor: 6, Kind: Open},
	{Path: "cmd/corbel/ui", Floor: 6, Kind: Open, Beside: []string{"cmd/corbel/internal/inspect", "cmd/corbel/internal/steering", "cmd/corbel/internal/why"}},
	{Path: "cmd/corbel/internal/cli", Floor: 6, Kind: Open, Beside: []string{
		"cmd/corbel/internal/inspect", "cmd/corbel/internal/steering", "cmd/corbel/internal/why", "cmd/corbel/ui",
	}},
	// It starts a control plane for an operator under development.
	{Path: "cmd/corbel/internal/command", Floor: 6, Kind: Open, Beside: []string{"cmd/corbel/internal/cli", "test/env"}},
	{Path: "cmd/corbel", Floor: 6, Kind: Open, Beside: []string{"cmd/corbel/internal/cli", "cmd/corbel/internal/command"}},

	// The demo of an example starts a control plane, like a test.
	{Path: "examples/...", Floor: 6, Kind: Open, Beside: []string{"test/env", "pkg/operator"}},

	// What make runs: it is no part of the library.
	{Path: "hack/gotest", Floor: supportFloor, Kind: Support},
	{Path: "cmd/corbel/hack/pack", Floor: supportFloor, Kind: Support},
	{Path: "cmd/corbel/hack/reference", Floor: supportFloor, Kind: Support},
	{Path: "cmd/corbel/hack/restorefleet", Floor: supportFloor, Kind: Support},
	{Path: "cmd/corbel/hack/scaffoldfleet", Floor: supportFloor, Kind: Support},
	{Path: "cmd/corbel/hack/operatorfleet", Floor: supportFloor, Kind: Support},
	{Path: "hack/picture", Floor: supportFloor, Kind: Support},
	{Path: "hack/face", Floor: supportFloor, Kind: Support},
	{Path: "pkg/component/componenttest", Floor: supportFloor, Kind: Support, Beside: []string{"test/wire"}},
	{Path: "pkg/conditions/conditionstest", Floor: supportFloor, Kind: Support},
	{Path: "pkg/manifests/manifeststest", Floor: supportFloor, Kind: Support},
	{Path: "pkg/reconciler/internal/model", Floor: supportFloor, Kind: Support},
	{Path: "test/architecture", Floor: supportFloor, Kind: Support},
	{Path: "test/audit", Floor: supportFloor, Kind: Support},
	{Path: "cmd/corbel/test/documented", Floor: supportFloor, Kind: Support},
	{Path: "cmd/corbel/test/shops", Floor: supportFloor, Kind: Support},
	{Path: "test/mutants", Floor: supportFloor, Kind: Support},
	{Path: "test/env", Floor: supportFloor, Kind: Support},
	{Path: "test/check", Floor: supportFloor, Kind: Support},
	{Path: "test/conformance", Floor: supportFloor, Kind: Support},
	{Path: "test/slice", Floor: supportFloor, Kind: Support},
	{Path: "test/trap", Floor: supportFloor, Kind: Support},
	{Path: "test/upgrade", Floor: supportFloor, Kind: Support},
	{Path: "test/widget/...", Floor: supportFloor, Kind: Support},
	{Path: "test/wire", Floor: supportFloor, Kind: Support},
	{Path: "test/e2e/...", Floor: supportFloor, Kind: Support},
	{Path: "test/bench/...", Floor: supportFloor, Kind: Support},
}

// covers reports whether a path is pattern, or below it if it ends in "/...".
func covers(pattern, path string) bool {
	folder, open := strings.CutSuffix(pattern, "/...")
	return path == folder || open && strings.HasPrefix(path, folder+"/")
}

// coversAny reports whether any of the patterns covers the path.
func coversAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return covers(pattern, path) })
}

// roomOf returns the room that a package lives in.
func roomOf(rooms []Room, path string) (Room, bool) {
	for _, room := range rooms {
		if covers(room.Path, path) {
			return room, true
		}
	}
	return Room{}, false
}

// isPublic reports whether users import the package, so that it needs an Example.
func isPublic(room Room) bool {
	inside := strings.HasPrefix(room.Path, "pkg/") || strings.HasPrefix(room.Path, "api/") || strings.HasPrefix(room.Path, "cmd/corbel/")
	return inside && room.Kind != Support && !slices.Contains(strings.Split(room.Path, "/"), "internal")
}
