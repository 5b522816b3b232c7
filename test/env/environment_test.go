// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

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
	e := check.Must(Start(t.Context(), Options{Logf: t.Logf}))(t)
	t.Cleanup(func() { _ = os.RemoveAll(e.Dir()) })
	e.etcd.kill()
	if err := e.Stop(); err == nil || !strings.Contains(err.Error(), "etcd ended by itself") {
		t.Errorf("Stop returns %v, want it to name etcd", err)
	}
}
