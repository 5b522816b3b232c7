// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"slices"
	"strings"
)

// closedExternal is what a closed package, and everything of ours that it
// reaches, may import from elsewhere. Some of apimachinery reaches the network
// itself; the packages listed here hold only types and pure functions.
var closedExternal = []string{
	"bytes", "cmp", "errors", "fmt", "hash", "hash/fnv", "iter", "maps", "math", "math/bits",
	"reflect", "regexp", "slices", "sort", "strconv", "strings", "text/tabwriter", "time",
	"unicode", "unicode/utf16", "unicode/utf8", "container/heap", "container/list",
	"crypto/sha256", "encoding/base32", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json",

	"k8s.io/apimachinery/pkg/api/equality",
	"k8s.io/apimachinery/pkg/api/meta",
	"k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/api/validation/...",
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation",
	"k8s.io/apimachinery/pkg/fields",
	"k8s.io/apimachinery/pkg/labels",
	"k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/runtime/schema",
	"k8s.io/apimachinery/pkg/selection",
	"k8s.io/apimachinery/pkg/types",
	"k8s.io/apimachinery/pkg/util/errors",
	"k8s.io/apimachinery/pkg/util/intstr",
	"k8s.io/apimachinery/pkg/util/json",
	"k8s.io/apimachinery/pkg/util/sets",
	"k8s.io/apimachinery/pkg/util/validation/...",
	"k8s.io/apimachinery/pkg/util/version",
	"sigs.k8s.io/json",
}

// dataExternal is what a data package may import in addition to closedExternal:
// the Object interface, reconcile.Result, the API's own types, and what only
// guards or feeds values.
var dataExternal = []string{
	"crypto/hmac", "crypto/sha512", "io", "sync", "sync/atomic",

	"k8s.io/api/...",
	"k8s.io/apimachinery/pkg/api/errors",
	"k8s.io/utils/ptr",
	"sigs.k8s.io/controller-runtime/pkg/client",
	"sigs.k8s.io/controller-runtime/pkg/reconcile",
}

// light are the packages that users import without the engine, and engineOnly are the libraries
// that these packages must not reach.
var (
	light = []string{
		"api/v1alpha1", "pkg/types", "pkg/conditions", "pkg/result", "pkg/patch", "pkg/summarize", "pkg/steps",
		"pkg/lifecycle", "pkg/lifecycle/external", "pkg/changes",
	}
	engineOnly = []string{
		"cel.dev/cel-go/...", "github.com/fluxcd/cli-utils/...", "k8s.io/kube-aggregator/...",
		"helm.sh/helm/...", "sigs.k8s.io/kustomize/...", "github.com/Masterminds/...",
	}
)

// clock names what reads or waits for the time, by package.
var clock = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},

	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
}

// Library is an external package, or a tree of them, that only some may import.
type Library struct {
	Path string
	// Rooms may import it; TestsToo opens it to every test, and so to Support rooms.
	Rooms    []string
	TestsToo bool
	// Why is the reason, as the end of the sentence "... because".
	Why string
}

// libraries are those that cost every user of a package that imports them.
// A more specific line precedes a more general one.
var libraries = []Library{
	{Path: "helm.sh/helm/v4/pkg/action/...", Why: "it brings a second engine that applies objects"},
	{Path: "helm.sh/helm/v4/pkg/ignore", Rooms: []string{"pkg/manifests/helm", "cmd/corbel/internal/scaffold"}, Why: "only charts have files to ignore"},
	{Path: "helm.sh/helm/v4/pkg/strvals", Rooms: []string{"cmd/corbel/internal/scaffold"}, Why: "only a Helm operator has values in the syntax of --set"},
	{Path: "helm.sh/helm/v4/pkg/chart/...", Rooms: []string{"pkg/manifests/helm", "cmd/corbel/internal/scaffold", "cmd/corbel/hack/scaffoldfleet"}, Why: "only charts name sub-charts"},
	{Path: "helm.sh/helm/v4/pkg/helmpath", Rooms: []string{"cmd/corbel/internal/command/remote"}, Why: "only the command looks for the configuration of Helm"},
	{Path: "helm.sh/helm/...", Rooms: []string{"pkg/manifests/helm", "cmd/corbel/hack/scaffoldfleet"}, Why: "only charts need Helm"},
	{Path: "oras.land/oras-go/...", Rooms: []string{"cmd/corbel/internal/command/remote"}, Why: "only the command fetches charts"},
	{Path: "github.com/opencontainers/...", Rooms: []string{"cmd/corbel/internal/command/remote"}, Why: "only the command fetches charts"},
	{Path: "github.com/Masterminds/semver/...", Rooms: []string{"cmd/corbel/internal/command/remote"}, Why: "only the command chooses versions"},
	{Path: "github.com/Masterminds/sprig/...", Rooms: []string{"pkg/manifests/internal/templates"}, Why: "only Go templates need its functions"},
	{Path: "sigs.k8s.io/kustomize/...", Rooms: []string{"pkg/manifests/kustomize"}, TestsToo: true, Why: "only kustomizations need it"},
	{Path: "cel.dev/cel-go/...", Rooms: []string{"pkg/status", "pkg/manifests/transform"}, Why: "only ready-when expressions and transformers need CEL"},
	{Path: "github.com/fluxcd/cli-utils/pkg/kstatus/status", Rooms: []string{"pkg/status"}, TestsToo: true, Why: "pkg/status is the one place that computes readiness"},
	{Path: "github.com/fluxcd/cli-utils/...", Why: "only its kstatus package is needed"},
	{Path: "github.com/fluxcd/pkg/...", Why: "it pulls test libraries into what is shipped"},
	{Path: "github.com/prometheus/client_golang/...", Rooms: []string{"internal/metrics"}, TestsToo: true, Why: "internal/metrics declares all metrics"},
	{Path: "go.opentelemetry.io/otel/sdk/...", TestsToo: true, Why: "exporters and processors are the business of the program"},
	{Path: "go.opentelemetry.io/otel/trace", Rooms: []string{"internal/trace", "pkg/reconciler", "pkg/component"}, TestsToo: true, Why: "internal/trace starts all spans, and options hold a provider"},
	{Path: "go.opentelemetry.io/...", Rooms: []string{"internal/trace"}, TestsToo: true, Why: "internal/trace starts all spans"},
	{Path: "github.com/spf13/cobra/...", Rooms: []string{"cmd/corbel/internal/command", "cmd/corbel/internal/cli", "pkg/operator", "cmd/corbel/hack/reference", "cmd/corbel/test/documented"}, Why: "only programs have flags"},
	{Path: "k8s.io/cli-runtime/...", Rooms: []string{"cmd/corbel/internal/command", "cmd/corbel/internal/cli"}, Why: "only the command corbel behaves as kubectl"},
	{Path: "github.com/fatih/color", Rooms: []string{"cmd/corbel/internal/cli"}, Why: "only the command corbel prints colours"},
	{Path: "github.com/moby/term", Rooms: []string{"cmd/corbel/internal/cli"}, Why: "only the command corbel prints to terminals"},
	{Path: "github.com/cockroachdb/datadriven/...", TestsToo: true, Why: "it is a test library"},
	{Path: "github.com/google/go-cmp/...", TestsToo: true, Why: "it is a test library and panics on unexported fields"},
	{Path: "sigs.k8s.io/controller-runtime/pkg/envtest/...", TestsToo: true, Why: "it is a test library"},
	{Path: "sigs.k8s.io/controller-runtime/pkg/client/fake", TestsToo: true, Why: "it is a test library"},
	{Path: "sigs.k8s.io/controller-runtime/pkg/client/interceptor", TestsToo: true, Why: "it is a test library"},
	{Path: "github.com/stretchr/testify/...", Why: "tests use the testing package and go-cmp"},
	{Path: "github.com/onsi/...", Why: "tests use the testing package and go-cmp"},
	{Path: "github.com/pkg/errors", Why: "the standard library wraps errors"},
	{Path: "io/ioutil", Why: "it is deprecated"},
}

// Libraries checks that heavy or unwanted external packages are imported only
// where they belong.
func Libraries(t *Tree, rooms []Room, limits []Library) []Violation {
	var found []Violation
	for _, p := range t.ours() {
		room, _ := roomOf(rooms, p.Path)
		for _, file := range p.Files {
			for _, i := range file.Imports {
				at := slices.IndexFunc(limits, func(l Library) bool { return covers(l.Path, i.Path) })
				if at < 0 || slices.Contains(limits[at].Rooms, room.Path) {
					continue
				}
				if test := file.Test || room.Kind == Support; test && limits[at].TestsToo {
					continue
				}
				found = append(found, violation(file.Path, "imports %s, which belongs %s, because %s",
					i.Path, belongs(limits[at]), limits[at].Why))
			}
		}
	}
	return found
}

func belongs(l Library) string {
	places := slices.Clone(l.Rooms)
	if l.TestsToo {
		places = append(places, "tests")
	}
	if len(places) == 0 {
		return "nowhere"
	}
	return "to " + strings.Join(places, " and ") + " only"
}
