// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/corbel-run/corbel/cmd/corbel/ui"
)

// AddPage serves the page at /corbel/ on a listener, which has to be one with TLS: requests have a token. All who may
// open it see what a service account may read.
func AddPage(to ctrl.Manager, listener net.Listener, serviceAccount string) error {
	config := rest.CopyConfig(to.GetConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + serviceAccount}
	page, err := ui.New(config, ui.Options{})
	if err != nil {
		return err
	}
	protect, err := filters.WithAuthenticationAndAuthorization(to.GetConfig(), to.GetHTTPClient())
	if err != nil {
		return err
	}
	handler, err := protect(to.GetLogger(), http.StripPrefix("/corbel", page))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(page.Close) // else its streams are waited for
	return to.Add(&manager.Server{Name: "corbel ui", Server: server, Listener: listener})
}
