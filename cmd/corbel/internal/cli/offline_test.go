// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/planview"
	"github.com/corbel-run/corbel/test/check"
)

// fleet is a server with many components. It answers lists page by page.
type fleet struct {
	client.WithWatch
	size  int
	pages int
	fails int // the page that is not answered
}

func (s *fleet) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if s.pages++; s.pages == s.fails {
		return errors.New("the page is lost")
	}
	begin, _ := strconv.Atoi(o.Continue)
	end := min(begin+int(o.Limit), s.size)
	found := list.(*unstructured.UnstructuredList)
	found.SetResourceVersion("1")
	for i := begin; i < end; i++ {
		items := map[string]any{}
		for j := range 40 {
			items[fmt.Sprintf("v1 ConfigMap fleet/c%d-%d", i, j)] = `{"uid":"0b1f8a52-6a39-4a41-9a0f-6a6f0e3f3c55"}`
		}
		found.Items = append(found.Items, unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "shop.example.com/v1alpha1", "kind": "Shop",
			"metadata": map[string]any{"namespace": "fleet", "name": fmt.Sprintf("shop-%05d", i), "generation": int64(1)},
			"status": map[string]any{
				"observedGeneration": int64(1), "reconciler": "shop.example.com", "state": "Ready", "progress": "40/40", "revision": int64(3), "inventory": map[string]any{"format": int64(3), "objects": items},
				"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "40 of 40 dependent objects are ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
			},
		}})
	}
	if end < s.size {
		found.SetContinue(strconv.Itoa(end))
	}
	return nil
}

func (s *fleet) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if s.size == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Group: "shop.example.com", Resource: "shops"}, key.Name)
	}
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return nil
}

// served is what the discovery of tests answers.
func served(kinds ...metav1.APIResource) discovery.DiscoveryInterface {
	return &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{GroupVersion: "shop.example.com/v1alpha1", APIResources: kinds}}}}
}

var shopResource = metav1.APIResource{
	Name: "shops", SingularName: "shop", Kind: "Shop", Namespaced: true, Verbs: []string{"get", "list", "watch"}, Categories: []string{inspect.Category},
}

// offline runs a command on a server of tests.
func offline(t *testing.T, server client.WithWatch, kinds discovery.DiscoveryInterface, change func(*frame), arguments ...string) answer {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	check.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	return runAs(t.Context(), func(f *frame) {
		reader := &inspect.Reader{Client: server, Mapper: apimeta.NewDefaultRESTMapper(nil), Discovery: kinds}
		f.connection = &connection{config: &rest.Config{Host: "localhost"}, client: server, reader: reader}
		f.now = func() time.Time { return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) }
		if change != nil {
			change(f)
		}
	}, append(arguments, "--kubeconfig", kubeconfig, "--namespace", "fleet")...)
}

func TestALargeFleetIsListedPageByPage(t *testing.T) {
	server := &fleet{size: 10_000}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	started := time.Now()
	var peak uint64
	got := offline(t, server, served(shopResource), func(f *frame) {
		f.Out = measuring{f.Out, func() {
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapAlloc)
		}}
	}, "get", "shops")
	if lines := strings.Count(got.out, "\n"); got.code != 0 || lines != 10_001 {
		t.Errorf("code %d, %d lines: %.300s", got.code, lines, got.err)
	}
	check.SameNamed(t, "requests", 20, server.pages)
	const limit = 200 << 20 // all of them at once would be more than 400 MiB
	if used := int64(peak) - int64(before.HeapAlloc); used > limit {
		t.Errorf("%d MiB are used", used>>20)
	}
	t.Logf("10,000 components: %s, %d MiB", time.Since(started).Round(time.Millisecond), (int64(peak)-int64(before.HeapAlloc))>>20)
}

func TestWhatWasReadBeforeAPageFailsIsPrinted(t *testing.T) {
	for _, format := range []string{"", "wide", "name", "json", "yaml"} {
		arguments := []string{"get", "shops"}
		if format != "" {
			arguments = append(arguments, "-o", format)
		}
		got := offline(t, &fleet{size: 1500, fails: 2}, served(shopResource), nil, arguments...)
		if read := strings.Count(got.out, "shop-00"); got.code != CodeTrouble || read != 500 || !strings.Contains(got.err, "error: list shops.shop.example.com: the page is lost") {
			t.Errorf("-o %q: code %d, %d components: %s", format, got.code, read, got.err)
		}
	}
}

// measuring calls a function with each write.
type measuring struct {
	to interface{ Write([]byte) (int, error) }
	at func()
}

func (m measuring) Write(text []byte) (int, error) {
	m.at()
	return m.to.Write(text)
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	server := &fleet{size: 2}
	for width, want := range map[int]string{
		0:   "KIND   NAME         READY   STATE   PROGRESS   REVISION   AGE         MESSAGE\nShop   shop-00000   True    Ready   40/40      3          <unknown>   40 of 40 dependent objects are ready\n",
		120: "KIND   NAME         READY   STATE   PROGRESS   REVISION   AGE         MESSAGE\nShop   shop-00000   True    Ready   40/40      3          <unknown>   40 of 40 dependent objects are ready\n",
		80:  "KIND   NAME         READY   STATE   MESSAGE\nShop   shop-00000   True    Ready   40 of 40 dependent objects are ready\n",
		40:  "KIND   NAME         STATE   MESSAGE\nShop   shop-00000   Ready   40 of 40 de…\n",
		20:  "KIND   NAME\nShop   shop-00000\n",
	} {
		got := offline(t, server, served(shopResource), func(f *frame) { f.width = func() int { return width } }, "get")
		if !strings.HasPrefix(got.out, want) {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got.out, want)
		}
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	server := &fleet{size: 1}
	got := offline(t, server, served(shopResource), func(f *frame) { f.colors = func() bool { return true } }, "get")
	if !strings.Contains(got.out, "\x1b[32mReady\x1b[0m   40/40") {
		t.Errorf("%q", got.out)
	}
	if got := offline(t, server, served(shopResource), nil, "get"); strings.Contains(got.out, "\x1b") {
		t.Errorf("%q", got.out)
	}
}

func TestTextsOfObjectsDoNotControlTheTerminal(t *testing.T) {
	var out bytes.Buffer
	f := newFrame(genericiooptions.IOStreams{Out: &out})
	if err := f.rows([][]cell{{plain("a\x1b[2J\r\nb"), plain("c")}}); err != nil || out.String() != `a\u001b[2J b   c`+"\n" {
		t.Errorf("%v %q", err, out.String())
	}
}

func TestKindsAreResolvedAsKubectlDoes(t *testing.T) {
	other := shopResource
	other.Name, other.SingularName, other.Kind, other.ShortNames = "stalls", "stall", "Stall", []string{"st"}
	for name, want := range map[string]string{
		"shops": "", "shop": "", "Shop": "", "SHOPS": "", "shop.shop.example.com": "", "shops.v1alpha1.shop.example.com": "", "st": "",
		"shoop": "did you mean shops?", "stal": "did you mean stalls?", "zzz": "types of components are shops, stalls",
	} {
		got := offline(t, &fleet{}, served(shopResource, other), nil, "get", name)
		if (want == "") != (got.code == 0) || !strings.Contains(got.err, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := offline(t, &fleet{}, served(), nil, "get"); got.code != CodeTrouble || !strings.Contains(got.err, "no operator that is built with Corbel is installed") {
		t.Errorf("no types: %v", got)
	}
}

func TestANameAloneIsFoundByGet(t *testing.T) {
	for _, arguments := range [][]string{{"get", "corner"}, {"get", "corner", "-o", "name"}} {
		if got := offline(t, &fleet{size: 1}, served(shopResource), nil, arguments...); got.code != 0 || !strings.Contains(got.out, "corner") {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
	if got := offline(t, &fleet{size: 1}, served(shopResource), nil, "get", "corner", "-A"); got.code != CodeTrouble || !strings.Contains(got.err, "no type \"corner\"") {
		t.Errorf("a name in all namespaces: %+v", got)
	}
}

func TestANameThatSeveralComponentsHaveIsRefused(t *testing.T) {
	other := shopResource
	other.Name, other.SingularName, other.Kind = "stalls", "stall", "Stall"
	got := offline(t, &fleet{size: 1}, served(shopResource, other), nil, "history", "corner")
	const want = "error: \"corner\" may mean shops.shop.example.com/corner or stalls.shop.example.com/corner: write KIND/NAME\n"
	if got.code != CodeTrouble || got.err != want {
		t.Errorf("%+v", got)
	}
}

func TestAPluginOfKubectlSaysSo(t *testing.T) {
	for program, want := range map[string]string{"/usr/bin/kubectl-corbel": "kubectl corbel get", "kubectl-corbel.exe": "kubectl corbel get", "corbel": "corbel get"} {
		var out bytes.Buffer
		command := newCommand(newFrame(genericiooptions.IOStreams{Out: &out, ErrOut: &out}), program)
		command.SetArgs([]string{"get", "--help"})
		if err := command.Execute(); err != nil || !strings.Contains(out.String(), "Usage:\n  "+want+" ") ||
			!strings.Contains(out.String(), "Examples:\n  "+want+" -A\n") || strings.Index(out.String(), "--watch ") > strings.Index(out.String(), "--kubeconfig ") {
			t.Errorf("%s: %v\n%s", program, err, out.String())
		}
	}
}

func TestAnErrorHasACode(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
		text string
	}{
		"none":        {},
		"an error":    {fmt.Errorf("it broke"), 2, "error: it broke\n"},
		"differences": {errNotSo, 1, ""},
		"Ctrl-C":      {fmt.Errorf("list: %w", context.Canceled), 130, ""},
	} {
		var out bytes.Buffer
		if code := Report(test.err, &out); code != test.code || out.String() != test.text {
			t.Errorf("%s: %d %q", name, code, out.String())
		}
	}
}

func TestFilesAreOfferedForFlagsWithFilesOnly(t *testing.T) {
	for begin, want := range map[string]string{"rollback a --to ": ":36\n", "approve a --plan ": ":4\n", "owner ": ":4\n", "plan -f ": ":0\n"} {
		if got := runAs(t.Context(), nil, append([]string{"__complete"}, strings.Split(begin, " ")...)...); !strings.HasPrefix(got.out, want) {
			t.Errorf("%s: %q", begin, got.out)
		}
	}
}

func TestFlagsAreTheSameOnEachMachine(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, command := range newCommand(newFrame(genericiooptions.IOStreams{}), "corbel").Commands() {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if strings.Contains(flag.DefValue+flag.Usage, home) {
				t.Errorf("%s --%s: %s", command.Name(), flag.Name, flag.DefValue)
			}
		})
		if command.Short == "" || command.Example == "" {
			t.Errorf("%s lacks a sentence or an example", command.Name())
		}
	}
}

func TestAMistakeIsNoAnswer(t *testing.T) {
	for _, command := range newFrame(genericiooptions.IOStreams{}).commands() {
		for _, mistake := range [][]string{{"--no-such-flag"}, {"a", "b", "c", "d"}} {
			got := runAs(t.Context(), nil, append([]string{command.Name()}, mistake...)...)
			if got.code != CodeTrouble || got.err == "" {
				t.Errorf("%s %s: %+v", command.Name(), mistake, got)
			}
		}
	}
	if got := runAs(t.Context(), nil, "plan", "--exit-code", "--all", "a"); got.code != planview.ExitError || got.err == "" {
		t.Errorf("plan --exit-code: %+v", got)
	}
}

func TestAKubeconfigThatDoesNotExistIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", missing)
	const want = " does not exist: correct it, or name a file with --kubeconfig"
	if got := runAs(t.Context(), nil, "get"); got.code != CodeTrouble || !strings.Contains(got.err, "KUBECONFIG names "+missing+", which"+want) {
		t.Errorf("%+v", got)
	}
}

func TestAFileWithANamespaceThatIsNoTextIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	check.NoError(t, os.WriteFile(file, []byte("apiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata: {name: corner, namespace: y}\n"), 0o600))
	got := offline(t, &fleet{size: 1}, served(shopResource), nil, "plan", "-f", file)
	if got.code != CodeTrouble || !strings.Contains(got.err, "metadata.namespace is no text; put it into quotes") {
		t.Errorf("%+v", got)
	}
}

func TestAKubeconfigWithoutAClusterIsNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	check.NoError(t, os.WriteFile(empty, nil, 0o600))
	t.Setenv("KUBECONFIG", empty)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if got := runAs(t.Context(), nil, "get"); got.code != CodeTrouble || !strings.Contains(got.err, "no kubeconfig names a cluster") {
		t.Errorf("%+v", got)
	}
}

// leaving is a server with one component. It answers a list, is away for the next ones, and has the component Ready then.
type leaving struct {
	*fleet
	lists int
	away  []error // what the second and later lists end with
}

var errNoServer = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

func (s *leaving) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.lists++
	if n := s.lists - 2; n >= 0 && n < len(s.away) && s.away[n] != nil {
		return s.away[n]
	}
	if err := s.fleet.List(ctx, list, options...); err != nil {
		return err
	}
	if s.lists <= len(s.away)+1 {
		for _, item := range list.(*unstructured.UnstructuredList).Items {
			unstructured.RemoveNestedField(item.Object, "status", "conditions")
		}
	}
	return nil
}

func (s *leaving) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	list := &unstructured.UnstructuredList{}
	if err := s.fleet.List(context.Background(), list, client.Limit(1)); err != nil {
		return err
	}
	unstructured.RemoveNestedField(list.Items[0].Object, "status", "conditions")
	object.(*unstructured.Unstructured).Object = list.Items[0].Object
	return nil
}

func (s *leaving) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errNoServer
}

func TestAWaitGoesOnUnlessTheServerRefuses(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Group: "shop.example.com", Resource: "shops"}, "", errors.New("the role was removed"))
	for _, test := range []struct {
		name  string
		away  error
		code  int
		lists int
		want  string
	}{
		{"the server is back", errNoServer, 0, 3, "connection refused; it is tried again"},
		{"the server refuses", refusal, CodeTrouble, 2, "the role was removed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := &leaving{fleet: &fleet{size: 1}, away: []error{test.away, nil}}
			got := offline(t, server, served(shopResource), nil, "wait", "shop/shop-00000")
			if got.code != test.code || server.lists < test.lists || !strings.Contains(got.err, test.want) {
				t.Errorf("after %d lists: %+v", server.lists, got)
			}
		})
	}
}

func TestLinesThatANarrowTerminalMakesEqualArePrintedOnce(t *testing.T) {
	var out bytes.Buffer
	table := &table{out: &out, width: 20, header: []string{"IMAGE", "OBJECT"}, widths: make([]int, 2), left: make([]bool, 2), optional: []string{"OBJECT"}, distinct: true}
	check.NoError(t, table.print([][]cell{{plain("example.com/a"), plain("Deployment a")}, {plain("example.com/a"), plain("Deployment b")}, {plain("example.com/b"), plain("Deployment a")}}))
	check.Same(t, "IMAGE\nexample.com/a\nexample.com/b\n", out.String())
}
