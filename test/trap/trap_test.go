// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trap_test

import (
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/test/trap"
)

func TestWhateverReachesOutIsCaught(t *testing.T) {
	traps := trap.Set(t)
	for name, test := range map[string]struct {
		reach func()
		want  string
	}{
		"a host name": {func() { _, _ = net.LookupHost("evil.example.com") }, "a question to the name server"},
		"a request":   {func() { _, _ = (&http.Client{}).Get("http://evil.example.com/x") }, "a request to http://evil.example.com/x"},
		"a connection": {func() {
			connection, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(traps.URL, "http://"), "/a.yaml"))
			if err == nil {
				_ = connection.Close()
			}
		}, "a connection to 127.0.0.1:"},
		"a program": {func() { _ = exec.Command("git", "clone", "x").Run() }, "the program git"},
	} {
		t.Run(name, func(t *testing.T) {
			test.reach()
			var caught []string
			for deadline := time.Now().Add(2 * time.Minute); len(caught) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				caught = traps.Caught()
			}
			if len(caught) == 0 || !strings.Contains(caught[0], test.want) {
				t.Errorf("caught %q, want %q", caught, test.want)
			}
		})
	}
}
