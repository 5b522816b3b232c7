// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Canary is what the environment variable, the file and the answers of the server
// hold. It must not appear in anything that is made of what was read.
const Canary = "canary-5f1c9e"

// Variable is the environment variable that holds the canary.
const Variable = "AWS_SECRET_ACCESS_KEY"

// programs are those that libraries start.
var programs = []string{"git", "helm", "kubectl", "kustomize", "sh", "bash", "docker", "sops", "age", "gpg", "curl", "ssh"}

// Traps are set until the test ends.
type Traps struct {
	// URL leads to a server on this machine, and File to a file of it. Both hold the canary.
	URL, File string

	started string // a folder that every program leaves a file in
	mu      sync.Mutex
	caught  []string
}

// Set lays traps for everything in this process, so that the test must not run in
// parallel with others. What falls into one fails the test when it ends, and
// whenever Check is called.
func Set(t *testing.T) *Traps {
	t.Helper()
	folder := t.TempDir()
	traps := &Traps{File: filepath.Join(folder, "file.yaml"), started: filepath.Join(folder, "started")}
	bin := filepath.Join(folder, "bin")
	err := errors.Join(
		os.WriteFile(traps.File, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "+Canary+"\n"), 0o600),
		os.Mkdir(traps.started, 0o700), os.Mkdir(bin, 0o700),
	)
	for _, program := range programs {
		script := fmt.Sprintf("#!/bin/sh\n: > '%s/%s'\n", traps.started, program)
		err = errors.Join(err, os.WriteFile(filepath.Join(bin, program), []byte(script), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv(Variable, Canary)
	traps.listen(t)
	traps.replace(t)
	t.Cleanup(func() { traps.Check(t) })
	return traps
}

// listen starts the server.
func (traps *Traps) listen(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	traps.URL = "http://" + listener.Addr().String() + "/a.yaml"
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			traps.catch("a connection to " + listener.Addr().String())
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
}

// replace puts traps in the place of what the libraries for networks use by default.
func (traps *Traps) replace(t *testing.T) {
	resolver, transport := net.DefaultResolver, http.DefaultTransport
	t.Cleanup(func() { net.DefaultResolver, http.DefaultTransport = resolver, transport })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		traps.catch("a question to the name server " + address)
		return nil, errors.New("there is no name server")
	}}
	http.DefaultTransport = roundTripper(func(request *http.Request) (*http.Response, error) {
		traps.catch("a request to " + request.URL.String())
		return nil, errors.New("there is no network")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (traps *Traps) catch(what string) {
	traps.mu.Lock()
	defer traps.mu.Unlock()
	traps.caught = append(traps.caught, what)
}

// Caught returns what fell into the traps since it was called last.
func (traps *Traps) Caught() []string {
	traps.mu.Lock()
	defer traps.mu.Unlock()
	caught := traps.caught
	traps.caught = nil
	entries, err := os.ReadDir(traps.started)
	if err != nil {
		caught = append(caught, err.Error())
	}
	for _, entry := range entries {
		caught = append(caught, "the program "+entry.Name())
		_ = os.Remove(filepath.Join(traps.started, entry.Name()))
	}
	return caught
}

// Check fails the test if anything fell into a trap, or if one of the texts, into
// which results and errors belong, holds the canary.
func (traps *Traps) Check(t *testing.T, texts ...string) {
	t.Helper()
	for _, caught := range traps.Caught() {
		t.Errorf("there was %s", caught)
	}
	for _, text := range texts {
		if strings.Contains(text, Canary) {
			t.Errorf("what must not be read is in: %.500s", text)
		}
	}
}
