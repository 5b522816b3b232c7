// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/env"
)

const (
	operatorName      = "shop.example.com"
	operatorNamespace = "shop-system"
	market            = "market" // the namespace of the shops
	patience          = 2 * time.Minute
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
	scheme := runtime.NewScheme()
	b.check(errors.Join(clientgoscheme.AddToScheme(scheme), shopv1alpha1.SchemeBuilder.AddToScheme(scheme)))
	var err error
	b.client, err = client.NewWithWatch(b.env.Config(), client.Options{Scheme: scheme})
	b.check(err)
	return b
}

// in returns the bed for a part of a test.
func (b *bed) in(t *testing.T) *bed { return &bed{T: t, env: b.env, ctx: b.ctx, client: b.client} }

// start installs the type and starts the operator; the end of the test ends it.
func (b *bed) start() {
	b.Helper()
	_, err := envtest.InstallCRDs(b.env.Config(), envtest.CRDInstallOptions{Paths: []string{"../../../../examples/shop/config/crd"}})
	b.check(err)
	for _, namespace := range []string{market, operatorNamespace} {
		b.check(b.client.Create(b.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	lock, err := component.NewLeaderLock(b.env.Config(), operatorNamespace, operatorName)
	b.check(err)
	manager, err := ctrl.NewManager(b.env.Config(), ctrl.Options{
		Scheme: b.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(time.Minute), RenewDeadline: new(50 * time.Second), // the machine may be busy
	})
	b.check(err)
	generator, err := helm.New(os.DirFS("../../../../examples/shop"), "chart", helm.Options{})
	b.check(err)
	shops := component.NewReconciler[*shopv1alpha1.Shop](operatorName, generator, component.ReconcilerOptions{Users: component.UserOptions{AdoptHelmReleases: true}, Controller: component.ControllerOptions{LeaderLock: lock}, Operator: component.OperatorOptions{OperatorNamespace: new(operatorNamespace)}})
	b.check(shops.SetupWithManager(manager))
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("the operator ended: %v", err)
		}
	})
}

func (b *bed) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) until(what string, check func() error) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("waited in vain until %s: %v", what, err)
		}
	}
}

// shop is a Shop as most users want it.
func shop(name string) *shopv1alpha1.Shop {
	return &shopv1alpha1.Shop{
		ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: name},
		Spec: shopv1alpha1.ShopSpec{ShopValues: shopv1alpha1.ShopValues{
			Replicas: 2, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: name + "-database",
			Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
		}},
	}
}

// createShop creates a Shop and waits until it is Ready.
func (b *bed) createShop(name string) {
	b.Helper()
	b.check(b.client.Create(b.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: name + "-database"}, StringData: map[string]string{"password": "a very secret canary"},
	}))
	b.check(b.client.Create(b.ctx, shop(name)))
	b.untilReady(name)
}

func (b *bed) untilReady(name string) {
	b.Helper()
	b.until("the Shop is Ready", func() error {
		s := shop(name)
		if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		if s.Status.IsReady() && s.Status.ObservedGeneration == s.Generation {
			conditionstest.Check(b, conditions.For(s, &s.Status.Conditions))
			return nil
		}
		state, reason, message := s.Status.GetState()
		return fmt.Errorf("it is %s (%s: %s)", state, reason, message)
	})
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
	file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; write it again with -rewrite):\n%s", file, diff)
	}
}
