// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func TestTwoEnvironmentsRunSideBySideAndLeaveNothing(t *testing.T) {
	// The version is a promise of our own programs only.
	before := os.Getenv(AssetsVariable)
	t.Setenv(AssetsVariable, "")
	_, err := Assets()
	own := err == nil
	if !own {
		t.Setenv(AssetsVariable, before)
	}
	var started [2]*Environment
	var errs [2]error
	var wait sync.WaitGroup
	for i := range started {
		wait.Go(func() { started[i], errs[i] = Start(t.Context(), Options{}) })
	}
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for i, e := range started {
		version, err := discovery.NewDiscoveryClientForConfigOrDie(e.Config()).ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if own && (version.GitVersion != "v1.36.3" || version.Major != "1" || version.Minor != "36") {
			t.Errorf("the server says that its version is %+v, want v1.36.3", version)
		}
		// The same name twice: the second would be refused if they shared anything.
		if err := newClient(t, e.Config()).Create(t.Context(), configMap("one")); err != nil {
			t.Errorf("environment %d: %v", i, err)
		}
	}
	for _, e := range started {
		pids := e.pids()
		start := time.Now()
		if err := errors.Join(e.Stop(), e.Stop()); err != nil {
			t.Errorf("stop: %v", err)
		}
		t.Logf("stopped within %s", time.Since(start).Round(time.Millisecond))
		if err := gone(pids); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(e.Dir()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("folder %s is left: %v", e.Dir(), err)
		}
	}
}

func TestKubeconfigIsPrivateAndWorks(t *testing.T) {
	e := Shared(t)
	for _, path := range []string{e.Kubeconfig(), e.file("service-accounts.key"), e.file("apiserver.key")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, mode)
		}
	}
	output, err := exec.Command(e.Program("kubectl"), "--kubeconfig", e.Kubeconfig(), "auth", "can-i", "*", "*").CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "yes" {
		t.Errorf("kubectl auth can-i answers %q (%v), want yes", output, err)
	}
}

func TestUsersMayDoWhatRBACAllowsThem(t *testing.T) {
	e := Shared(t)
	config, err := e.ConfigFor("jane", "developers")
	if err != nil {
		t.Fatal(err)
	}
	err = newClient(t, config).Create(t.Context(), configMap("of-jane"))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "jane"`) {
		t.Errorf("a user without roles gets %v, want a refusal", err)
	}
}

func TestAPIServerComesBackAfterACrash(t *testing.T) {
	t.Parallel()
	e := New(t, Options{})
	c := newClient(t, e.Config())
	if err := c.Create(t.Context(), configMap("kept")); err != nil {
		t.Fatal(err)
	}
	if err := e.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kept"}, configMap("")); err == nil {
		t.Error("a killed API server answers")
	}
	if err := e.KillAPIServer(); err == nil {
		t.Error("an API server was killed twice without an error")
	}
	if err := e.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kept"}, configMap("")); err != nil {
		t.Errorf("after the restart, on the same port: %v", err)
	}
}

func TestAPortThatAnotherProcessTookIsNotUsedAgain(t *testing.T) {
	inUse, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inUse.Close()
	asked := 0
	e := New(t, Options{findPort: func() (int, error) {
		if asked++; asked == 1 {
			return inUse.Addr().(*net.TCPAddr).Port, nil
		}
		return freePort()
	}})
	if asked != 2 || e.Config().Host == fmt.Sprintf("https://%s", inUse.Addr()) {
		t.Errorf("%d ports were tried, and the server is at %s", asked, e.Config().Host)
	}
}

func TestAFailedStartReportsTheReasonAndKeepsTheLogs(t *testing.T) {
	var said string
	_, err := Start(t.Context(), Options{
		APIServerArgs: []string{"--no-such-flag"},
		Logf:          func(format string, args ...any) { said += fmt.Sprintf(format, args...) },
	})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Fatalf("the error is %v, want it to hold the end of the log", err)
	}
	_, logs, found := strings.Cut(said, "kept in ")
	if !found {
		t.Fatalf("said %q, want the place of the logs", said)
	}
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(logs)) })
	if _, err := os.Stat(filepath.Join(logs, "kube-apiserver.log")); err != nil {
		t.Error(err)
	}
	if err := noSecrets(filepath.Dir(logs)); err != nil {
		t.Error(err)
	}
}

func TestAProgramThatDiesIsReported(t *testing.T) {
	t.Parallel()
	e, err := Start(t.Context(), Options{Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(e.Dir()) })
	e.etcd.kill()
	if err := e.Stop(); err == nil || !strings.Contains(err.Error(), "etcd ended by itself") {
		t.Errorf("Stop returns %v, want it to name etcd", err)
	}
}
