// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
	"github.com/corbel-run/corbel/internal/deploy"
)

// program is a running operator.
type program struct {
	command *exec.Cmd
	log     string
	done    chan error
}

// startProgram starts an operator with the arguments that its chart gives it. Metrics and probes are not served.
// Adopt, unless it is nil, lets it end with this process.
func startProgram(binary, kubeconfig string, installed deploy.Operator, leaderElection bool, adopt func(*exec.Cmd)) (*program, error) {
	log := filepath.Join(filepath.Dir(binary), "operator.log")
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	args := slices.DeleteFunc(slices.Clone(installed.Args), func(arg string) bool {
		return !leaderElection && strings.HasPrefix(arg, "--leader-elect")
	})
	p := &program{command: exec.Command(binary, append(args, "--metrics-bind-address=0", "--health-probe-bind-address=0")...), log: log, done: make(chan error, 1)}
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE="+installed.Namespace)
	p.command.Stdout, p.command.Stderr = out, out
	if adopt != nil {
		adopt(p.command)
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.command.Wait() }()
	return p, nil
}

// failure returns an error if the operator has ended by itself. It may be called on nil.
func (p *program) failure() error {
	if p == nil {
		return nil
	}
	select {
	case err := <-p.done:
		p.done <- err // for the next call
		text, _ := os.ReadFile(p.log)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return fmt.Errorf("the operator has ended (%v): %s", err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	default:
		return nil
	}
}

// stopsWithin is how long an operator may take to end.
const stopsWithin = 20 * time.Second

// stop ends the operator. It may be called on nil.
func (p *program) stop() {
	if p == nil {
		return
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil { // it has ended, or this is Windows, which has no such signal
		_ = p.command.Process.Kill()
	}
	select {
	case <-p.done:
	case <-time.After(stopsWithin):
		_ = p.command.Process.Kill()
		<-p.done
	}
}

// goBuild builds the operator.
func goBuild(ctx context.Context, folder, binary string) error {
	command := scaffold.GoCommand(ctx, "go", "build", "-o", binary, ".")
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// writeKubeconfig writes a kubeconfig of the service account of the operator. Its token is good for a day.
func writeKubeconfig(ctx context.Context, name string, config *rest.Config, c client.Client, installed deploy.Operator) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: installed.Namespace, Name: installed.Account}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("get a token of ServiceAccount %s/%s: %w", installed.Namespace, installed.Account, err)
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure,
		TLSServerName: config.ServerName,
	}
	file.AuthInfos["operator"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	file.Contexts["operator"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "operator"}
	file.CurrentContext = "operator"
	return clientcmd.WriteToFile(*file, name)
}

// fingerprint changes when a file of the project does. The folder bin and hidden files are not part of it.
func fingerprint(folder string) string {
	hash := sha256.New()
	_ = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil { // it was removed meanwhile
			return nil
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && name != folder
		switch {
		case entry.IsDir() && (hidden || name == filepath.Join(folder, "bin")):
			return fs.SkipDir
		case hidden || !entry.Type().IsRegular():
			return nil
		}
		if info, err := entry.Info(); err == nil {
			fmt.Fprintln(hash, name, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return hex.EncodeToString(hash.Sum(nil))
}
