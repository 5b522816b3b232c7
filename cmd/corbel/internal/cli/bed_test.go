// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

var (
	rewrite     = flag.Bool("rewrite", false, "write the files of testdata")
	helmProgram = flag.String("helm", "", "a program of Helm 4, by which releases are upgraded and uninstalled")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(env.Main(m, env.Options{Cluster: true}))
}

const (
	operatorName = shops.OperatorName
	market       = shops.Namespace
	patience     = 2 * time.Minute
)

// bed is a cluster with an operator in this process.
type bed struct {
	*testing.T
	env    *env.Environment
	ctx    context.Context
	client client.WithWatch
}

// openBed makes a bed without an operator.
func openBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, env: env.Shared(t), ctx: context.WithoutCancel(t.Context())}
	b.client = check.Must(shops.Client(b.env))(b)
	return b
}

// in returns the bed for a part of a test.
func (b *bed) in(t *testing.T) *bed { return &bed{T: t, env: b.env, ctx: b.ctx, client: b.client} }

func (b *bed) untilReady(name string) {
	b.Helper()
	check.Must(shops.AwaitReady(b.ctx, b.client, name))(b)
}

// patch changes an object by a merge patch.
func (b *bed) patch(object client.Object, text string) {
	b.Helper()
	check.NoError(b, b.client.Patch(b.ctx, object, client.RawPatch(types.MergePatchType, []byte(text))))
}

// answer is what a command printed.
type answer struct {
	out, err string
	code     int
}

// run runs a command as an administrator, in the namespace of the shops.
func (b *bed) run(arguments ...string) answer {
	b.Helper()
	return runAs(b.Context(), nil, append(arguments, "--kubeconfig", b.env.Kubeconfig(), "--namespace", market)...)
}

// runThrough runs a command until the context ends. The wrapper gets all requests of the command.
func (b *bed) runThrough(ctx context.Context, wrap transport.WrapperFunc, arguments ...string) answer {
	b.Helper()
	return runAs(ctx, func(f *frame) {
		f.flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
			c.Wrap(wrap)
			return c
		}
	}, append(arguments, "--kubeconfig", b.env.Kubeconfig(), "--namespace", market)...)
}

// runAs runs a command; change may change its frame.
func runAs(ctx context.Context, change func(*frame), arguments ...string) answer {
	var out, errOut bytes.Buffer
	f := newFrame(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut})
	if change != nil {
		change(f)
	}
	command := newCommand(f, "corbel")
	command.SetArgs(arguments)
	code := Report(command.ExecuteContext(ctx), &errOut)
	return answer{out.String(), errOut.String(), code}
}

// text is the answer with its exit code, and with what differs from run to run masked.
func (a answer) text() string {
	text := a.out
	if a.err != "" {
		text += "--- standard error\n" + a.err
	}
	if a.code != 0 {
		text += fmt.Sprintf("--- exit code %d\n", a.code)
	}
	for _, mask := range masks {
		text = mask.find.ReplaceAllString(text, mask.put)
	}
	return text
}

var masks = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`("digest": )"[^"]+"`), "${1}DIGEST"},
	{regexp.MustCompile(`("generator": )"[A-Za-z0-9_-]{16}"`), "${1}GENERATOR"},
	{regexp.MustCompile(`\b[0-9a-f]{20}\b`), "PLAN"},
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "SERVER"}, {regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`(-[0-9a-f]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-HASH"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m|h)(\d+s)?\b`), "AGE"},
	{regexp.MustCompile(`(corner-[a-z]+)-[0-9a-f]{8,10}\b`), "$1-HASH"},
	{regexp.MustCompile(`(\S) {3,}`), "$1  "}, // columns are as wide as what is masked
}

// golden compares an answer with a file of testdata.
func golden(t *testing.T, name string, got string) {
	t.Helper()
	check.Golden(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden"), got, *rewrite)
}
