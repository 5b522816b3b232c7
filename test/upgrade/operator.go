// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/deploy"
)

// stopsWithin is how long an operator may take to end.
const stopsWithin = 20 * time.Second

// operator is a running operator.
type operator struct {
	user    string // in the audit log
	log     string
	command *exec.Cmd
	ended   chan struct{}
}

// start installs the chart of an operator without workloads, and starts the program as the service account of the chart.
func (r *rehearsal) start(ctx context.Context, folder, name string) (*operator, error) {
	version, err := deploy.VersionOf(r.env.Config())
	if err != nil {
		return nil, err
	}
	installed, err := deploy.Render(ctx, os.DirFS(filepath.Join(folder, "deploy")), version)
	if err != nil {
		return nil, err
	}
	if err := installed.Apply(ctx, r.client); err != nil {
		return nil, err
	}
	o := &operator{
		user: "system:serviceaccount:" + installed.Namespace + ":" + installed.Account,
		log:  filepath.Join(r.env.LogDir(), name+".log"), ended: make(chan struct{}),
	}
	kubeconfig := filepath.Join(r.env.Dir(), name+".kubeconfig")
	if err := r.writeKubeconfig(kubeconfig, o.user, installed.Namespace); err != nil {
		return nil, err
	}
	output, err := os.Create(o.log)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the program has its own copy
	// At this level, controller-runtime logs each reconcile.
	args := append(installed.Args, "--zap-log-level=5", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	o.command = exec.Command(filepath.Join(folder, "operator"), args...)
	o.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE="+installed.Namespace)
	o.command.Stdout, o.command.Stderr = output, output
	r.env.Adopt(o.command)
	if err := o.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = o.command.Wait() // ProcessState has the result
		close(o.ended)
	}()
	return o, nil
}

// writeKubeconfig writes the kubeconfig of a service account.
func (r *rehearsal) writeKubeconfig(name, user, namespace string) error {
	config, err := r.env.ConfigFor(user, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		return err
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["cluster"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["operator"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts["operator"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "operator"}
	file.CurrentContext = "operator"
	return clientcmd.WriteToFile(*file, name)
}

// failure returns an error if the operator has ended.
func (o *operator) failure() error {
	select {
	case <-o.ended:
		return fmt.Errorf("the operator has ended by itself (%v); its log is %s", o.command.ProcessState, o.log)
	default:
		return nil
	}
}

// stop ends the operator, and reports one that had ended before. It may be called on nil, and again.
func (o *operator) stop() error {
	if o == nil || o.command == nil {
		return nil
	}
	if err := o.failure(); err != nil {
		return err
	}
	_ = o.command.Process.Signal(syscall.SIGTERM) // fails only if it has just ended
	var err error
	select {
	case <-o.ended:
	case <-time.After(stopsWithin):
		_ = o.command.Process.Kill() // fails only if it has just ended
		<-o.ended
		err = fmt.Errorf("the operator has not ended within %s; its log is %s", stopsWithin, o.log)
	}
	o.command = nil
	return err
}

// logged returns how long the log is.
func (o *operator) logged() (int64, error) {
	info, err := os.Stat(o.log)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// reconciled returns the components for which a reconcile has started and ended behind a position of the log.
func (o *operator) reconciled(position int64) (map[client.ObjectKey]bool, error) {
	text, err := os.ReadFile(o.log)
	if err != nil {
		return nil, err
	}
	return reconciledIn(text[position:]), nil
}

// reconciledIn reads the lines of controller-runtime.
func reconciledIn(log []byte) map[client.ObjectKey]bool {
	started, ended := map[string]bool{}, map[client.ObjectKey]bool{}
	for line := range bytes.Lines(log) {
		var entry struct{ Msg, Namespace, Name, ReconcileID string }
		if json.Unmarshal(line, &entry) != nil || entry.ReconcileID == "" {
			continue
		}
		switch {
		case entry.Msg == "Reconciling":
			started[entry.ReconcileID] = true
		case started[entry.ReconcileID] && (strings.HasPrefix(entry.Msg, "Reconcile ") || entry.Msg == "Reconciler error"):
			ended[client.ObjectKey{Namespace: entry.Namespace, Name: entry.Name}] = true
		}
	}
	return ended
}
