// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/check"
)

// scaffoldedChart makes the operator of a chart with corbel init. corbel dev installs the chart of the operator, runs the
// operator as its service account, creates the sample, waits until it is ready, and deletes it.
func scaffoldedChart(t testing.TB, c *cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // it compiles
	defer cancel()
	root := check.Must(filepath.Abs(filepath.Join("..", "..")))(t)
	work := t.TempDir()
	chart, corbel := filepath.Join(work, "chart"), filepath.Join(work, "corbel")
	project := filepath.Join(work, c.prefix+"-chart") // the name of the operator, and of what is installed for it
	run := func(folder, program string, arguments ...string) string {
		command := exec.CommandContext(ctx, program, arguments...)
		command.Dir, command.WaitDelay = folder, time.Minute
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(program), err, output)
		}
		return string(output)
	}
	replace := func(file, from, to string) {
		text := check.Must(os.ReadFile(file))(t)
		check.NoError(t, os.WriteFile(file, regexp.MustCompile(from).ReplaceAll(text, []byte(to)), 0o644))
	}
	check.NoError(t, os.CopyFS(chart, os.DirFS(filepath.Join("testdata", "chart"))))
	replace(filepath.Join(chart, "values.yaml"), "image: .*", "image: "+*image)
	run(root, "go", "build", "-o", corbel, "./cmd/corbel")
	run(work, corbel, "init", project, "--from-chart", chart, "--kind", sampleKind.Kind, "--group", sampleKind.Group, "--corbel", root)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.prefix + "-sample", Labels: podSecurity}}
	check.NoError(t, c.client.Create(ctx, namespace))
	replace(filepath.Join(project, "samples", "sample.yaml"), "(?m)^metadata:$", "metadata:\n  namespace: "+namespace.Name)
	output := run(project, corbel, "dev", "--once", "--kubeconfig", check.Must(filepath.Abs(c.kubeconfig))(t))
	name := "Sample " + namespace.Name + "/sample: "
	check.Contains(t, output, name+"Ready", "─ Deployment", "sample-web", name+"is gone")
	deployments := &appsv1.DeploymentList{}
	check.NoError(t, c.client.List(ctx, deployments, client.InNamespace(namespace.Name)))
	check.SameNamed(t, "Deployments that are left", 0, len(deployments.Items))
}
