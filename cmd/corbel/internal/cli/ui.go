// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/cmd/corbel/ui"
)

// uiFlags are the flags of ui.
type uiFlags struct {
	*frame
	address       string
	port          uint16
	write, open   bool
	allNamespaces bool
}

const uiHelp = `Serve a page on this machine that shows components and follows their changes: dependents, changes of other clients, causes, plans of
an edit, events and the history.

The server uses your kubeconfig and your rights, and listens on the loopback interface only. The printed address has a token. Values
of Secrets do not leave the server. The page only reads, unless --write is set. Ctrl-C ends the server.`

func (f *frame) uiCommand() *cobra.Command {
	u := &uiFlags{frame: f}
	command := &cobra.Command{
		Use: "ui", Short: "Show components on a page in your browser", Long: uiHelp,
		Example: "  corbel ui -A\n  corbel ui -n market --write\n  corbel ui --port 8080 --open=false",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return u.run(c.Context()) },
	}
	flags := command.Flags()
	flags.BoolVarP(&u.allNamespaces, "all-namespaces", "A", false, "show components of all namespaces")
	flags.BoolVar(&u.write, "write", false, "let the page reconcile, suspend, resume and roll back components")
	flags.Uint16Var(&u.port, "port", 0, "the port of the server; 0 takes one that is free")
	flags.StringVar(&u.address, "address", "127.0.0.1", "the address of the server: 127.0.0.1 or ::1")
	flags.BoolVar(&u.open, "open", true, "open the page in a browser, if the standard output is a terminal")
	return command
}

func (u *uiFlags) run(ctx context.Context) error {
	if address, err := netip.ParseAddr(u.address); err != nil || !address.IsLoopback() {
		return usage("--address %q is no address of the loopback interface, such as 127.0.0.1: the page has your rights, and is for you only", u.address)
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	config, err := u.config()
	if err != nil {
		return err
	}
	options := ui.Options{Write: u.write, Token: rand.Text(), Context: *u.flags.Context}
	if raw, err := u.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && options.Context == "" {
		options.Context = raw.CurrentContext
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		options.Version = build.Main.Version
	}
	if !u.allNamespaces {
		if options.Namespace, err = u.namespace(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(u.address, strconv.Itoa(int(u.port))))
	if err != nil {
		return fmt.Errorf("the server cannot listen: %w; choose another --port", err)
	}
	options.Address = listener.Addr().String()
	page, err := ui.New(config, options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer page.Close()
	address := "http://" + options.Address + "/?token=" + options.Token
	file, remove := "", func() {}
	if u.open && u.width() > 0 {
		file, remove = fileTo(address)
	}
	defer remove()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if page.ServeHTTP(w, r); r.URL.Query().Get("token") == options.Token { // the page was opened
				remove()
			}
		}),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if _, err := fmt.Fprintln(u.Out, address); err != nil {
		return errors.Join(err, server.Close())
	}
	if file != "" {
		openBrowser(file)
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), server.Close())
	}
}

// fileTo writes a page that leads to an address, into a folder that only this user may read: other users of the machine
// can see the arguments of programs, and the address has the token. If that fails, the name of the file is empty.
func fileTo(address string) (file string, remove func()) {
	folder, err := os.MkdirTemp("", "corbel-ui-")
	if err != nil {
		return "", func() {}
	}
	file = filepath.Join(folder, "open.html")
	text := `<!doctype html><meta charset="utf-8"><title>Corbel</title><meta http-equiv="refresh" content="0; url=` + address + `">`
	if os.WriteFile(file, []byte(text), 0o600) != nil {
		file = ""
	}
	return file, sync.OnceFunc(func() { _ = os.RemoveAll(folder) })
}

// openBrowser opens a file. If that fails, the address is on the terminal.
func openBrowser(file string) {
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	command := exec.Command(program[0], append(program[1:], file)...)
	if command.Start() == nil {
		go func() { _ = command.Wait() }()
	}
}
