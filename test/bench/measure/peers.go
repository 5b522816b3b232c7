// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// MostOfPeers is up to how many components charts are measured beside commands. A command is a process for each
// component, so its time grows with their number and with nothing else.
const MostOfPeers = 100

// callers is how many commands run at the same time: more than there are cores, because a command waits for answers.
const callers = 4

// peer is a command that does with one component at a time what Corbel does.
type peer struct {
	name    report.Subject
	program string
	// prepare writes what the command needs for a component into a folder.
	prepare func(t *tool, component, cpu, version string) error
	// install, upgrade and remove are the arguments for a component.
	install, upgrade, remove func(t *tool, component string) []string
}

// peersOfCharts returns what measures each of the commands.
func (b *bench) peersOfCharts() (courses []func(context.Context, int) error) {
	if b.Components > MostOfPeers {
		return nil
	}
	applied := func(t *tool, component string) []string {
		return []string{"apply", "--server-side", "-f", t.path(component + ".json")}
	}
	released := func(command string) func(*tool, string) []string {
		return func(t *tool, component string) []string { return []string{command, component, t.path(component)} }
	}
	for _, p := range []peer{
		{
			name: report.Helm, program: b.Helm, prepare: writeChart, install: released("install"), upgrade: released("upgrade"),
			remove: func(_ *tool, component string) []string { return []string{"uninstall", component} },
		},
		{
			name: report.Kubectl, program: b.env.Program("kubectl"), prepare: writeManifests, install: applied, upgrade: applied,
			remove: func(t *tool, component string) []string { return []string{"delete", "-f", t.path(component + ".json")} },
		},
	} {
		if p.program != "" {
			courses = append(courses, func(ctx context.Context, _ int) error { return b.peer(ctx, p) })
		}
	}
	return courses
}

// peer measures a command.
func (b *bench) peer(ctx context.Context, p peer) (err error) {
	t, err := b.newTool(ctx, p.name, p.program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for _, s := range []struct {
		scenario     report.Scenario
		cpu, version string
		arguments    func(*tool, string) []string
	}{
		{report.Install, "1", firstChart, p.install},
		{report.ChangeAll, "2", firstChart, p.upgrade},
		{report.NewChart, "2", secondChart, p.upgrade},
		{report.Delete, "2", secondChart, p.remove},
	} {
		for i := range b.Components {
			if err := p.prepare(t, componentOf(i), s.cpu, s.version); err != nil {
				return err
			}
		}
		err := b.audited(ctx, s.scenario, p.name, func(ctx context.Context) (time.Duration, subject.Usage, error) {
			return t.each(ctx, s.arguments)
		})
		if err != nil {
			return err
		}
	}
	return b.collected(ctx, t.namespace)
}

func componentOf(i int) string { return fmt.Sprintf("load-%d", i) }

// each calls the command once for each component, several at a time.
func (t *tool) each(ctx context.Context, arguments func(*tool, string) []string) (time.Duration, subject.Usage, error) {
	var cpu atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callers)
	clock := newStopwatch()
	for i := range t.Components {
		group.Go(func() error {
			r, err := t.run(ctx, 0, arguments(t, componentOf(i))...)
			cpu.Add(int64(r.usage.CPU))
			return err
		})
	}
	err := group.Wait()
	return clock.took(), subject.Usage{CPU: time.Duration(cpu.Load())}, err
}

// writeManifests writes the objects of a component as one list.
func writeManifests(t *tool, component, cpu, version string) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, object := range subject.Chart(component, cpu, version) {
		object.SetNamespace(t.namespace)
		list.Items = append(list.Items, *object)
	}
	content, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(t.path(component+".json"), content, 0o600)
}

// writeChart writes a chart with the objects of a component.
func writeChart(t *tool, component, cpu, version string) error {
	if err := os.MkdirAll(t.path(component+"/templates"), 0o700); err != nil {
		return err
	}
	metadata := fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s.0.0\n", component, version)
	if err := os.WriteFile(t.path(component+"/Chart.yaml"), []byte(metadata), 0o600); err != nil {
		return err
	}
	for _, object := range subject.Chart(component, cpu, version) {
		content, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if err := os.WriteFile(t.path(component+"/templates/"+object.GetKind()+".yaml"), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
