// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/why"
	"github.com/corbel-run/corbel/internal/lease"
	"github.com/corbel-run/corbel/internal/planview"
	"github.com/corbel-run/corbel/internal/preview"
)

const collectHelp = `Write an archive for a support case: components, inventories, dependents, pods, events, causes, and the plans of the last ten minutes;
Leases, logs and metrics of the operators; and versions. Without a name, the archive has all components of the
namespace. The command only reads from the cluster.

The archive has no values of Secrets. It has *** in place of texts that repeat a value of a Secret in the same namespaces, or that look
like credentials. The file LEFT-OUT.txt in the archive lists everything that is missing, and why. Read the archive before you send it.`

// maxCollected bounds a file of the archive, in bytes. It is less than the filter of credentials leaves.
const maxCollected = 512 << 10

// maxWait bounds a request that the API server passes on, such as that for metrics: the process may take it, and give no answer.
const maxWait = 30 * time.Second

// alwaysLeft is what no archive has, and what is not looked for.
const alwaysLeft = `values of Secrets, and their annotations
logs of pods of components: "kubectl logs" prints them
a new plan: the question to the operator is a write. The answer to "corbel plan" is collected for ten minutes
values of Secrets with fewer than four characters or more than 16 KiB, and values that Secrets had before, are not looked for in other objects and logs`

// collector writes an archive. All of its files go through the redactor.
type collector struct {
	*frame
	redactor
	cluster *connection
	server  *rest.RESTClient
	archive *tar.Writer
	left    []string // what is not in the archive, and why
	err     error    // the first error of a write
}

func (f *frame) collectCommand() *cobra.Command {
	var file string
	var s *scope
	command := &cobra.Command{
		Use: "collect [" + componentUse + "]", Short: "Write an archive for a support case", Long: collectHelp,
		Example:           "  corbel collect shop/corner\n  corbel collect -A --filename case-7.tar.gz",
		ValidArgsFunction: f.completeComponents,
		RunE:              func(c *cobra.Command, _ []string) error { return f.collect(c.Context(), s, file) },
	}
	s = addScope(command, "collect")
	command.Flags().StringVarP(&file, "filename", "f", "corbel-collect.tar.gz", "the archive to write")
	return command
}

// collect writes the archive whole, or not at all.
func (f *frame) collect(ctx context.Context, s *scope, file string) error {
	cluster, err := f.connect()
	if err != nil {
		return err
	}
	var components []inspect.Component
	failure := f.each(ctx, s, func(c inspect.Component) error {
		components = append(components, c)
		return nil
	})
	if len(components) == 0 {
		return failure
	}
	config := rest.CopyConfig(cluster.config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.Timeout = cmp.Or(config.Timeout, maxWait)
	server, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), ".corbel-collect-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	compressed := gzip.NewWriter(part)
	c := &collector{frame: f, cluster: cluster, server: server, archive: tar.NewWriter(compressed), left: []string{alwaysLeft}}
	c.leave("components", failure)
	c.all(ctx, components)
	if err := errors.Join(ctx.Err(), c.err, c.archive.Close(), compressed.Close(), part.Close()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return err
	}
	_, err = fmt.Fprintf(f.Out, "%s has %s; its file LEFT-OUT.txt says what is not in it. Read the archive before you send it.\n", file, count(len(components), "component", "components"))
	return err
}

// leave notes what is not in the archive. No error is no note.
func (c *collector) leave(what string, err error) {
	if err != nil {
		c.left = append(c.left, what+": "+oneLine(err.Error()))
	}
}

// object writes a value as YAML.
func (c *collector) object(name string, value any) {
	var plain any
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err == nil {
		text, err = yaml.Marshal(c.redactor.object(plain))
	}
	if c.leave(name, err); err == nil {
		c.write(name, string(text))
	}
}

// write writes a file. Of a long one, the end is written: values are replaced before, as a cut would leave a part of one.
func (c *collector) write(name, text string) {
	if text = c.withoutValues(text); len(text) > maxCollected {
		_, text, _ = strings.Cut(text[len(text)-maxCollected:], "\n")
		c.leave(name, fmt.Errorf("it is longer than %d KiB: its beginning", maxCollected>>10))
	}
	text = c.text(text)
	header := tar.Header{Name: "corbel-collect/" + c.text(name), Mode: 0o600, Size: int64(len(text)), ModTime: c.now()}
	if c.err = cmp.Or(c.err, c.archive.WriteHeader(&header)); c.err == nil {
		_, c.err = c.archive.Write([]byte(text))
	}
}

func (c *collector) all(ctx context.Context, components []inspect.Component) {
	c.redactor = newRedactor(c.secretValues(ctx, components))
	leases := map[string]bool{}
	for i, component := range components {
		c.component(ctx, fmt.Sprintf("%03d-%s-%s/", i+1, component.Type.Kind, component.Object.GetName()), component)
		if by := component.Status.Inventory.Operator; by != nil && !leases[by.Lease] {
			leases[by.Lease] = true
			c.operator(ctx, fmt.Sprintf("operator-%03d/", len(leases)), *by)
		}
	}
	types, err := c.cluster.reader.Types()
	c.leave("types of components", err)
	findings, err := c.cluster.reader.Check(ctx, types, "", c.now())
	c.leave("check.yaml", err)
	c.object("check.yaml", findings)
	version, err := c.server.Get().AbsPath("/version").Do(ctx).Raw()
	c.leave("version of the server", err)
	build, _ := debug.ReadBuildInfo()
	c.write("versions.txt", fmt.Sprintf("types: %v\nserver: %s\ncommand: %v\n", types, version, build))
	c.write("LEFT-OUT.txt", strings.Join(c.left, "\n")+"\n")
}

// secretValues reads the Secrets in the namespaces of components, of their dependents and of their operators.
func (c *collector) secretValues(ctx context.Context, components []inspect.Component) (values [][]byte) {
	read := func(secrets ...corev1.Secret) {
		for _, secret := range secrets {
			if secret.Type == corev1.SecretTypeServiceAccountToken {
				delete(secret.Data, corev1.ServiceAccountNamespaceKey) // it is in nearly every file
			}
			values = slices.AppendSeq(values, maps.Values(secret.Data))
		}
	}
	refused := map[string]error{"": errors.New("objects without a namespace")} // by namespace: why its Secrets are not listed
	for _, component := range components {
		inventory, _ := c.cluster.reader.Inventory(ctx, component) // the list of dependents has the error
		places := append(inventory.Items, v1alpha1.InventoryItem{Namespace: component.Object.GetNamespace()})
		if by := component.Status.Inventory.Operator; by != nil {
			places = append(places, v1alpha1.InventoryItem{Namespace: by.Namespace})
		}
		for _, item := range places {
			err, known := refused[item.Namespace]
			if !known {
				list := &corev1.SecretList{}
				err = c.cluster.client.List(ctx, list, client.InNamespace(item.Namespace))
				c.leave("values of Secrets in namespace "+item.Namespace+" may be repeated in other files, because the Secrets are not read", err)
				read(list.Items...)
				refused[item.Namespace] = err
			}
			secret := corev1.Secret{}
			if err != nil && item.Kind == "Secret" && c.cluster.client.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: item.Name}, &secret) == nil {
				read(secret) // a user may be allowed to read one Secret, but not to list all
			}
		}
	}
	return values
}

func (c *collector) component(ctx context.Context, folder string, component inspect.Component) {
	reader := c.cluster.reader
	c.object(folder+"component.yaml", component.Object.Object)
	inventory, err := reader.Inventory(ctx, component)
	c.leave(folder+"inventory.yaml", err)
	c.object(folder+"inventory.yaml", inventory.Items)
	dependents, err := reader.Dependents(ctx, component)
	c.leave(folder+"dependents", err)
	pods, err := reader.Pods(ctx, dependents)
	c.leave(folder+"pods", err)
	c.object(folder+"tree.yaml", treeView{component: component, dependents: dependents, pods: pods}.output())
	for i, d := range dependents {
		if d.Object == nil {
			c.leave(folder+"dependents: "+d.String(), fmt.Errorf("%s: %s", d.State, d.Message))
			continue
		}
		if d.Item.Kind == "Secret" {
			d.Object.SetAnnotations(nil)
		}
		c.object(fmt.Sprintf("%sdependents/%03d-%s-%s.yaml", folder, i+1, d.Item.Kind, d.Item.Name), d.Object.Object)
		for _, pod := range pods[d.Object.GetUID()] {
			c.object(fmt.Sprintf("%spods/%03d-%s.yaml", folder, i+1, pod.GetName()), pod.Object)
		}
	}
	events, err := reader.Events(ctx, component, dependents)
	c.leave(folder+"events.yaml", err)
	c.object(folder+"events.yaml", events)
	causes := why.Collector{Reader: c.cluster.client}
	chain, err := causes.Explain(ctx, why.Facts{Object: component.Object, Status: component.Status, Reconciler: component.Reconciler}, c.now)
	if c.leave(folder+"why.txt", err); err == nil {
		c.write(folder+"why.txt", chain.Text(c.now()))
	}
	list, owner := &corev1.SecretList{}, preview.Owner{Reconciler: component.Reconciler, UID: component.Object.GetUID()}
	c.leave(folder+"plan.txt", c.cluster.client.List(ctx, list, client.InNamespace(component.Object.GetNamespace()), client.MatchingLabels(owner.Labels())))
	for i := range list.Items {
		answer, err := preview.AnswerIn(&list.Items[i])
		view := planview.View{Operator: component.Reconciler, Hidden: answer.Hidden}
		if err == nil && len(answer.Plan) > 0 && json.Unmarshal(answer.Plan, &view.Plan) == nil {
			c.write(fmt.Sprintf("%splan-%d.txt", folder, i+1), answer.Request+"\n"+view.Text())
		}
	}
}

// operator collects the Lease of an operator, and the pod, the logs and the metrics of the process that holds it.
func (c *collector) operator(ctx context.Context, folder string, by v1alpha1.InventoryOperator) {
	live, pod := &coordinationv1.Lease{}, &corev1.Pod{}
	namespace, name, _ := strings.Cut(by.Lease, "/")
	err := c.cluster.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, live)
	if err == nil {
		c.object(folder+"lease.yaml", live)
		holder, _, _ := strings.Cut(lease.Of(live, c.now()).Holder, "_")
		err = c.cluster.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: holder}, pod)
	}
	if err != nil {
		c.leave("log and metrics of the operator with the Lease "+by.Lease+", which may run outside of the cluster", err)
		return
	}
	c.object(folder+"pod.yaml", pod)
	answer := func(name string, of string, parameters ...string) {
		request := c.server.Get().AbsPath("/api/v1/namespaces", namespace, "pods", of)
		for i := 0; i < len(parameters); i += 2 {
			request.Param(parameters[i], parameters[i+1])
		}
		text, err := request.Do(ctx).Raw()
		if c.leave(folder+name, err); err == nil {
			c.write(folder+name, string(text))
		}
	}
	port := int32(8080)
	for _, container := range pod.Spec.Containers {
		answer(container.Name+".log", pod.Name+"/log", "container", container.Name, "tailLines", "5000")
		answer(container.Name+"-previous.log", pod.Name+"/log", "container", container.Name, "tailLines", "5000", "previous", "true")
		for _, p := range container.Ports {
			if strings.Contains(p.Name, "metrics") {
				port = p.ContainerPort
			}
		}
	}
	answer("metrics.txt", fmt.Sprintf("%s:%d/proxy/metrics", pod.Name, port))
}
