// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// tool is a command that users call, with a user, a home folder and a namespace of its own.
type tool struct {
	*bench
	name      report.Subject
	program   string
	home      string
	namespace string
}

// newTool makes the namespace and the home folder. Close removes the folder.
func (b *bench) newTool(ctx context.Context, name report.Subject, program string) (*tool, error) {
	namespace, err := b.newNamespace(ctx, name)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "corbel-bench-")
	if err != nil {
		return nil, err
	}
	t := &tool{bench: b, name: name, program: program, home: home, namespace: namespace}
	if err := t.writeKubeconfig(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close removes the home folder.
func (t *tool) Close() error { return os.RemoveAll(t.home) }

func (t *tool) path(name string) string { return filepath.Join(t.home, name) }

func (t *tool) writeKubeconfig() error {
	config, err := ConfigFor(t.env, t.name)
	if err != nil {
		return err
	}
	user := User(t.name)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[user] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts[user] = &clientcmdapi.Context{Cluster: user, AuthInfo: user, Namespace: t.namespace}
	kubeconfig.CurrentContext = user
	return clientcmd.WriteToFile(*kubeconfig, t.path("kubeconfig"))
}

// result is what a call of a command ended with.
type result struct {
	code   int
	output string
	took   time.Duration
	usage  subject.Usage
}

// run calls the command. An exit code above the one that is accepted is an error.
func (t *tool) run(ctx context.Context, accepted int, arguments ...string) (result, error) {
	var output, log bytes.Buffer
	command := exec.CommandContext(ctx, t.program, arguments...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.home, "TMPDIR=" + t.home, "KUBECONFIG=" + t.path("kubeconfig")}
	command.Stdout, command.Stderr = &output, &log
	clock := newStopwatch()
	err := command.Run()
	r := result{output: output.String(), took: clock.took()}
	if command.ProcessState != nil {
		r.code = command.ProcessState.ExitCode()
		r.usage.CPU = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited && r.code >= 0 && r.code <= accepted {
		err = nil
	}
	if err != nil {
		return r, fmt.Errorf("%s %s: %w\n%s", filepath.Base(t.program), strings.Join(arguments, " "), err, &log)
	}
	return r, nil
}

// call is a call of a command that is measured, and a text that its output must hold a number of times.
type call struct {
	scenario  report.Scenario
	arguments []string
	accepted  int // the highest exit code that is no failure
	text      string
	times     int
}

func (t *tool) measure(ctx context.Context, calls []call) error {
	for _, c := range calls {
		err := t.audited(ctx, c.scenario, t.name, func(ctx context.Context) (time.Duration, subject.Usage, error) {
			r, err := t.run(ctx, c.accepted, c.arguments...)
			if got := strings.Count(r.output, c.text); err == nil && c.text != "" && got != c.times {
				err = fmt.Errorf("the output has %q %d times, want %d:\n%.4000s", c.text, got, c.times, r.output)
			}
			return r.took, r.usage, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// kubectl measures kubectl diff, and a dry run of kubectl delete.
func (b *bench) kubectl(ctx context.Context, _ int) (err error) {
	t, err := b.newTool(ctx, report.Kubectl, b.env.Program("kubectl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for file, objects := range map[string]subject.Objects{"before": b.objects("1", "1"), "one": b.objects("1", "2"), "all": b.objects("2", "1")} {
		if err := t.writeList(t.path(file), objects); err != nil {
			return err
		}
	}
	const differs = "diff -u -N "
	diff := func(scenario report.Scenario, file string, changes int) call {
		return call{scenario: scenario, arguments: []string{"diff", "--server-side", "-f", t.path(file)}, accepted: 1, text: differs, times: changes}
	}
	apply := func(file string) []string { return []string{"apply", "--server-side", "-f", t.path(file)} }
	// What the command keeps in its home folder is learned before it counts.
	if _, err := t.run(ctx, 0, "get", "configmaps"); err != nil {
		return err
	}
	if err := t.measure(ctx, []call{diff(report.PlanInstall, "before", b.Objects)}); err != nil {
		return err
	}
	if _, err := t.run(ctx, 0, apply("before")...); err != nil {
		return err
	}
	err = t.measure(ctx, []call{
		diff(report.PlanUnchanged, "before", 0),
		diff(report.PlanOne, "one", 1),
		diff(report.PlanAll, "all", b.Objects),
		{scenario: report.PlanDelete, arguments: []string{"delete", "--dry-run=server", "-f", t.path("before")}, text: "(server dry run)", times: b.Objects},
		{scenario: report.ChangeAll, arguments: apply("all"), text: " serverside-applied", times: b.Objects},
	})
	if err != nil {
		return err
	}
	if _, err := t.run(ctx, 0, "delete", "-f", t.path("before")); err != nil {
		return err
	}
	return b.nothingLeft(ctx, t.namespace)
}

// objects are those of a component with plans.
func (b *bench) objects(all, one string) subject.Objects {
	return subject.Objects{Prefix: "main", N: b.Objects, All: all, One: one}
}

// writeList writes objects as one list.
func (t *tool) writeList(path string, objects subject.Objects) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, object := range objects.Unstructured(t.namespace) {
		list.Items = append(list.Items, *object)
	}
	content, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// chart has the objects as a template.
var chart = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: main\nversion: 1.0.0\n",
	"templates/objects.yaml": `{{- range $i := until (int .Values.objects) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: main-{{ $i }}
data:
  all: {{ $.Values.all | quote }}
  {{- if eq $i 0 }}
  one: {{ $.Values.one | quote }}
  {{- end }}
{{- end }}
`,
}

// helm measures the dry runs of Helm's commands, and helm rollback.
func (b *bench) helm(ctx context.Context, _ int) (err error) {
	t, err := b.newTool(ctx, report.Helm, b.Helm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := os.MkdirAll(t.path("chart/templates"), 0o700); err != nil {
		return err
	}
	for name, content := range chart {
		if err := os.WriteFile(t.path("chart/"+name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	with := func(command, all, one string, more ...string) []string {
		return append([]string{
			command, "main", t.path("chart"), "--set", "objects=" + strconv.Itoa(b.Objects), "--set-string", "all=" + all, "--set-string", "one=" + one,
		}, more...)
	}
	dryRun := func(scenario report.Scenario, command, all, one string) call {
		return call{scenario: scenario, arguments: with(command, all, one, "--dry-run=server"), text: "kind: ConfigMap", times: b.Objects}
	}
	if _, err := t.run(ctx, 0, "list"); err != nil {
		return err
	}
	if err := t.measure(ctx, []call{dryRun(report.PlanInstall, "install", "1", "1")}); err != nil {
		return err
	}
	if _, err := t.run(ctx, 0, with("install", "1", "1")...); err != nil {
		return err
	}
	err = t.measure(ctx, []call{
		dryRun(report.PlanUnchanged, "upgrade", "1", "1"),
		dryRun(report.PlanOne, "upgrade", "1", "2"),
		dryRun(report.PlanAll, "upgrade", "2", "1"),
		{scenario: report.PlanDelete, arguments: []string{"uninstall", "main", "--dry-run"}},
		{scenario: report.ChangeAll, arguments: with("upgrade", "2", "1")},
		{scenario: report.Rollback, arguments: []string{"rollback", "main", "1"}},
	})
	if err != nil {
		return err
	}
	if err := b.allAre(ctx, t.namespace, "1"); err != nil {
		return err
	}
	if _, err := t.run(ctx, 0, "uninstall", "main"); err != nil {
		return err
	}
	return b.nothingLeft(ctx, t.namespace)
}
