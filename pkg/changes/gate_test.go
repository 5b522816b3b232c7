// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"net/http"
	"path"
	"strings"

	"github.com/corbel-run/corbel/test/wire"
)

// newGate returns a gate that counts the requests of a reconcile, to the API server and to the receiver.
func newGate() *wire.Gate { return &wire.Gate{Counts: isOfAPass} }

// written returns the writes to the API server since the last call.
func written(g *wire.Gate) (writes []string) {
	for _, request := range g.Requests() {
		if method, of, sent := strings.Cut(request, " "); sent && method != http.MethodGet {
			writes = append(writes, method+" "+path.Base(of))
		}
	}
	g.Aim(0, false, nil)
	return writes
}

// isOfAPass reports whether a request is about one object: not a watch, a list or what a
// client asks about types.
func isOfAPass(r *http.Request) bool {
	return r.Method != http.MethodGet || strings.Contains(r.URL.Path, "/configmaps/")
}
