// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePageIsServedUntilCtrlC(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"here","context":{"cluster":"c"}}],"current-context":"here"}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan answer, 1)
	go func() {
		done <- runAs(ctx, func(f *frame) { f.Out = in }, "ui", "--kubeconfig", kubeconfig, "--namespace", market)
	}()
	line := make([]byte, 1000)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(string(line[:n]))
	page, _, _ := strings.Cut(address, "?token=")
	if !strings.HasPrefix(page, "http://127.0.0.1:") || len(address) < len(page)+20 {
		t.Fatalf("it prints %q", address)
	}
	if got, text := fetch(t, &http.Client{}, page); got != http.StatusUnauthorized {
		t.Errorf("without the token: %d %s", got, text)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	if got, text := fetch(t, browser, address); got != http.StatusOK || !strings.Contains(text, "<html") {
		t.Errorf("the page: %d %s", got, text)
	}
	if _, text := fetch(t, browser, page+"api/info"); !strings.Contains(text, `"context":"here","namespace":"market","server":"https://127.0.0.1:1"`) || !strings.Contains(text, `"write":false`) {
		t.Errorf("info: %s", text)
	}
	cancel()
	if got := <-done; got.code != CodeInterrupted {
		t.Errorf("%+v", got)
	}
}

func fetch(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	response, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestThePageIsServedOnThisMachineOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0", "::", "192.0.2.1", "localhost", ""} {
		if got := runAs(t.Context(), nil, "ui", "--address", address); got.code != CodeNo || !strings.Contains(got.err, "is no address of the loopback interface") {
			t.Errorf("%q: %+v", address, got)
		}
	}
}
