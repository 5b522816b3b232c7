// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// startPage runs the command, and returns the address that it prints. The end is that of Ctrl-C.
func startPage(t *testing.T, change func(*frame)) (address string, end func() answer) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"here","context":{"cluster":"c"}}],"current-context":"here"}`
	check.NoError(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan answer, 1)
	go func() {
		done <- runAs(ctx, func(f *frame) { f.Out = in; change(f) }, "ui", "--kubeconfig", kubeconfig, "--namespace", market)
	}()
	line := make([]byte, 1000)
	n := check.Must(out.Read(line))(t)
	return strings.TrimSpace(string(line[:n])), sync.OnceValue(func() answer { cancel(); return <-done })
}

func TestThePageIsServedUntilCtrlC(t *testing.T) {
	address, end := startPage(t, func(*frame) {})
	page, given, _ := strings.Cut(address, "?token=")
	if !strings.HasPrefix(page, "http://127.0.0.1:") || len(address) < len(page)+20 {
		t.Fatalf("it prints %q", address)
	}
	if got, text := fetch(t, page, ""); got != http.StatusOK || !strings.Contains(text, "<html") {
		t.Errorf("the page: %d %s", got, text)
	}
	if got, text := fetch(t, page+"api/info", ""); got != http.StatusUnauthorized {
		t.Errorf("without the token: %d %s", got, text)
	}
	if _, text := fetch(t, page+"api/info", given); !strings.Contains(text, `"context":"here","namespace":"market","server":"https://127.0.0.1:1"`) || !strings.Contains(text, `"write":false`) {
		t.Errorf("info: %s", text)
	}
	if got := end(); got.code != CodeInterrupted {
		t.Errorf("%+v", got)
	}
}

// Other users of the machine can see the arguments of programs.
func TestTheBrowserIsGivenAFileThatLeadsToThePage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the program that opens a browser is another one")
	}
	for name, opens := range map[string]bool{"the page is opened": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			programs, temporary := t.TempDir(), t.TempDir()
			given := filepath.Join(programs, "given")
			script := "#!/bin/sh\nprintf %s \"$*\" > " + given + ".new && mv " + given + ".new " + given + "\n"
			check.NoError(t, os.WriteFile(filepath.Join(programs, "xdg-open"), []byte(script), 0o700))
			t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
			t.Setenv("TMPDIR", temporary)
			address, end := startPage(t, func(f *frame) { f.width = func() int { return 80 } })
			defer end()
			var file []byte
			env.Until(t, "the browser is opened", func() (err error) { file, err = os.ReadFile(given); return err })
			text, err := os.ReadFile(string(file))
			if err != nil || !strings.Contains(string(text), `content="0; url=`+address+`"`) {
				t.Errorf("%q has %q, %v", file, text, err)
			}
			for path, mode := range map[string]os.FileMode{string(file): 0o600, filepath.Dir(string(file)): 0o700} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: %v, %v", path, info, err)
				}
			}
			if opens {
				fetch(t, address, "")
			} else {
				end()
			}
			env.Until(t, "the file is removed", func() error {
				if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
					return fmt.Errorf("%v is left, %v", left, err)
				}
				return nil
			})
		})
	}
}

func fetch(t *testing.T, url, token string) (int, string) {
	t.Helper()
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	r.Header.Set("X-Corbel-Token", token)
	response := check.Must(http.DefaultClient.Do(r))(t)
	defer func() { _ = response.Body.Close() }()
	text := check.Must(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(text)
}

func TestThePageIsServedOnThisMachineOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0", "::", "192.0.2.1", "localhost", ""} {
		if got := runAs(t.Context(), nil, "ui", "--address", address); got.code != CodeTrouble || !strings.Contains(got.err, "is no address of the loopback interface") {
			t.Errorf("%q: %+v", address, got)
		}
	}
}
