// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/steering"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/planview"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
)

// planFlags are the flags of plan.
type planFlags struct {
	*frame
	output         *output
	file, operator string
	all, delete    bool
	allNamespaces  bool
	exitCode       bool
	endRollback    bool
}

const planHelp = `Show what the operator would do for a component: as it is stored, as a file would change it, or for its deletion.

The annotation preview of the component asks the running operator, which plans with its rights. Values of Secrets are masked, and values
of objects in other namespaces are left out. With --operator, the program of an operator, such as the next version, plans with your rights.

If a component is rolled back, the plan is that of the earlier revision; --end-rollback plans its spec, or with -f the file.

With --exit-code the exit code is 0 if nothing changes, 1 after an error, 2 if objects are created or changed,
3 if objects are deleted or recreated or pods restart, and 4 if a change is refused or blocked.`

func (f *frame) planCommand() *cobra.Command {
	p := &planFlags{frame: f}
	command := &cobra.Command{
		Use: "plan [" + componentUse + "] [-f FILE]", Short: "Show what the operator would do for a component", Long: planHelp,
		Example: "  corbel plan shop/corner\n  corbel plan -f shop.yaml --exit-code\n  corbel plan shop/corner --delete\n  corbel plan -f shop.yaml --end-rollback\n  corbel plan -A",
		Args:    cobra.MaximumNArgs(2), ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			err := p.run(c.Context(), c.Flags(), arguments)
			if err != nil && p.exitCode && exitOf(err) == nil && c.Context().Err() == nil {
				err = &ExitError{Code: planview.ExitError, Err: err}
			}
			return err
		},
	}
	p.output = addOutputFlag(command)
	flags := command.Flags()
	flags.StringVarP(&p.file, "filename", "f", "", "a file with the component as YAML or JSON; - is the standard input")
	flags.BoolVar(&p.delete, "delete", false, "plan the deletion of the component")
	flags.BoolVar(&p.endRollback, "end-rollback", false, "plan the component as it is after the end of its rollback")
	flags.BoolVar(&p.exitCode, "exit-code", false, "let the exit code say what the plan has")
	flags.StringVar(&p.operator, "operator", "", "the program of an operator, in place of the one that runs")
	flags.BoolVar(&p.all, "all", false, "plan all components of the namespace; with --operator of all namespaces, unless -n names one")
	flags.BoolVarP(&p.allNamespaces, "all-namespaces", "A", false, "plan all components of all namespaces")
	return command
}

func (p *planFlags) run(ctx context.Context, flags *pflag.FlagSet, arguments []string) error {
	if err := p.output.check(); err != nil {
		return err
	}
	many := p.all || p.allNamespaces
	switch {
	case many && (len(arguments) > 0 || p.file != ""):
		return usage("--all and -A exclude a name and -f")
	case many && (p.delete || p.endRollback):
		return usage("--delete and --end-rollback plan one component: name it")
	case p.operator != "":
		return p.byProgram(ctx, flags, arguments)
	case many:
		return p.ofAll(ctx)
	}
	return p.byOperator(ctx, arguments)
}

// plansAtATime bounds how many questions are asked at a time.
const plansAtATime = 4

// ofAll asks the operators that run about each component.
func (p *planFlags) ofAll(ctx context.Context) error {
	var components []inspect.Component
	failure := p.each(ctx, &scope{allNamespaces: p.allNamespaces}, func(c inspect.Component) error {
		components = append(components, c)
		return nil
	})
	if len(components) == 0 {
		return failure
	}
	rows := make([]planview.Row, len(components))
	var running errgroup.Group
	running.SetLimit(plansAtATime)
	for i, c := range components {
		running.Go(func() error {
			rows[i].Component = c.String()
			rows[i].Err = guard.Call(func() (err error) {
				rows[i].View, err = p.view(ctx, c, preview.Question{})
				return err
			})
			return nil
		})
	}
	if _ = running.Wait(); ctx.Err() != nil {
		return ctx.Err()
	}
	text, err := planview.FormatAll(cmp.Or(p.output.format, "text"), "component", rows)
	if err == nil {
		_, err = io.WriteString(p.Out, text)
	}
	code, failed := planview.ExitNothing, false
	for _, row := range rows {
		code, failed = max(code, row.Code()), failed || row.Err != nil
	}
	switch {
	case failure != nil || err != nil:
		return errors.Join(failure, err)
	case failed && p.exitCode:
		return &ExitError{Code: planview.ExitError} // the table says why
	case failed:
		return &ExitError{Code: CodeTrouble}
	case p.exitCode && code != planview.ExitNothing:
		return &ExitError{Code: code}
	}
	return nil
}

// byOperator asks the operator that runs.
func (p *planFlags) byOperator(ctx context.Context, arguments []string) error {
	switch {
	case p.delete && p.file != "":
		return usage("--delete and -f exclude each other")
	case p.delete && p.endRollback:
		return usage("--delete and --end-rollback exclude each other")
	case len(arguments) == 0 && p.file == "":
		return componentArguments(nil, arguments)
	}
	var edited *unstructured.Unstructured
	if p.file != "" {
		var err error
		if edited, err = p.read(); err != nil {
			return err
		}
	}
	c, err := p.planned(ctx, arguments, edited)
	if err != nil {
		return err
	}
	if p.endRollback {
		if edited, err = steering.WithoutRollback(c, edited); err != nil {
			return err
		}
	}
	view, err := p.view(ctx, c, preview.Question{Edited: edited, Delete: p.delete})
	if err != nil {
		return err
	}
	if p.file != "" && edited.GetResourceVersion() != "" {
		p.note("%s has a resourceVersion, and the question to the operator has changed that of the component: remove it from the file before you apply it", p.file)
	}
	if view.Plan.RollbackTo != 0 && !p.delete {
		p.note("changes of the spec are not applied before the rollback is ended; --end-rollback shows what is done then")
	}
	return p.print(view)
}

// view asks the operator for the plan of a component. Of a component that is being deleted, the plan has the dependents that hold the
// deletion back, too: the operator plans no write for them.
func (p *planFlags) view(ctx context.Context, c inspect.Component, q preview.Question) (planview.View, error) {
	view := planview.View{Operator: c.Reconciler, Current: c.Status.Revision, Delete: q.Delete}
	answer, err := p.ask(ctx, c, q)
	if err != nil {
		return view, err
	}
	if err := json.Unmarshal(answer.Plan, &view.Plan); err != nil {
		return view, fmt.Errorf("the answer of the operator of %s cannot be read: %w", c, err)
	}
	view.Hidden = answer.Hidden
	deleted := c.Object.GetDeletionTimestamp()
	if deleted == nil {
		return view, nil
	}
	view.Delete, view.Note = true, fmt.Sprintf("It is being deleted for %s: %s", age(deleted.Time, p.now()), c.Ready().Message)
	reader, err := p.reader()
	if err != nil {
		return view, err
	}
	dependents, err := reader.Dependents(ctx, c)
	if inspect.IsLost(err) {
		err = nil
	}
	for _, d := range dependents {
		if d.State == inspect.StateDeleting && len(d.Object.GetFinalizers()) > 0 {
			view.Plan.Changes = append(view.Plan.Changes, report.PlannedChange{
				Key:        report.Key{Group: d.Item.Group, Kind: d.Item.Kind, Namespace: d.Item.Namespace, Name: d.Item.Name},
				APIVersion: d.Object.GetAPIVersion(), Class: report.ChangeBlocked, Reason: string(report.WaitBlocked), Message: "deleted, and held by " + d.Message,
			})
		}
	}
	return view, err
}

// note prints what the plan itself does not say.
func (p *planFlags) note(format string, arguments ...any) {
	fmt.Fprintln(p.ErrOut, "note:", sentence.Printable(fmt.Sprintf(format, arguments...)))
}

// print prints a plan. Its exit code is an error if it was asked for.
func (p *planFlags) print(view planview.View) error {
	text, err := view.Format(cmp.Or(p.output.format, "text"))
	if err != nil {
		return err
	}
	if _, err := io.WriteString(p.Out, text); err != nil {
		return err
	}
	if code := planview.ExitCode(view.Plan); p.exitCode && code != planview.ExitNothing {
		return &ExitError{Code: code}
	}
	return nil
}

// maxFile bounds the file of a component, in bytes.
const maxFile = 4 * preview.MaxEdited

// read reads the component in the file.
func (p *planFlags) read() (*unstructured.Unstructured, error) {
	in := p.In
	if p.file != "-" {
		file, err := os.Open(p.file)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.file, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s has more than %d KiB", p.file, maxFile>>10)
	}
	edited := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(text, &edited.Object); err != nil {
		return nil, fmt.Errorf("%s is no component in YAML or JSON: %w", p.file, err)
	}
	for _, field := range []string{"name", "namespace"} { // else a namespace such as y, which YAML takes for a boolean, would be none
		if _, _, err := unstructured.NestedString(edited.Object, "metadata", field); err != nil {
			return nil, fmt.Errorf("%s: metadata.%s is no text; put it into quotes", p.file, field)
		}
	}
	if edited.GetKind() == "" || edited.GetAPIVersion() == "" || edited.GetName() == "" {
		return nil, fmt.Errorf("%s is no component: apiVersion, kind and metadata.name are needed", p.file)
	}
	return edited, nil
}

// planned reads the component that the arguments or the file name.
func (p *planFlags) planned(ctx context.Context, arguments []string, edited *unstructured.Unstructured) (inspect.Component, error) {
	if edited == nil {
		return p.component(ctx, arguments)
	}
	kind := edited.GroupVersionKind().GroupKind()
	named := []string{strings.TrimSuffix(kind.Kind+"."+kind.Group, "."), edited.GetName()}
	if namespace := edited.GetNamespace(); namespace != "" {
		p.flags.Namespace = &namespace
	}
	c, err := p.component(ctx, named)
	if apierrors.IsNotFound(err) {
		return c, fmt.Errorf("%w; of a component that does not exist, only the program of the operator can make a plan: name it with --operator", err)
	}
	if err != nil || len(arguments) == 0 {
		return c, err
	}
	asked, err := p.component(ctx, arguments)
	if err == nil && asked.Object.GetUID() != c.Object.GetUID() {
		err = usage("the file has %s, and not %s", c, asked)
	}
	return c, err
}

// ask asks the operator of a component.
func (f *frame) ask(ctx context.Context, c inspect.Component, q preview.Question) (preview.Answer, error) {
	connection, err := f.connect()
	if err != nil {
		return preview.Answer{}, err
	}
	q.Component, q.FieldOwner = c.Object, steering.FieldManager
	return preview.Ask(ctx, connection.client, q)
}

// byProgram runs the program of an operator with the same flags.
func (p *planFlags) byProgram(ctx context.Context, flags *pflag.FlagSet, arguments []string) error {
	texts := map[string]string{
		"filename": p.file, "output": p.output.format, "namespace": *p.flags.Namespace, "kubeconfig": *p.flags.KubeConfig, "context": *p.flags.Context,
	}
	if p.allNamespaces {
		texts["namespace"] = ""
	}
	switches := map[string]bool{"all": p.all || p.allNamespaces, "delete": p.delete, "exit-code": p.exitCode}
	var unknown string
	flags.Visit(func(flag *pflag.Flag) {
		_, isText := texts[flag.Name]
		if _, isSwitch := switches[flag.Name]; !isText && !isSwitch && flag.Name != "operator" && flag.Name != "all-namespaces" {
			unknown = flag.Name
		}
	})
	if unknown != "" {
		return usage("--%s cannot be combined with --operator: the program of an operator does not know it", unknown)
	}
	run := []string{"plan"}
	if len(arguments) > 0 {
		kind, name, err := split(arguments)
		if err != nil {
			return err
		}
		if kind != "" {
			return usage("with --operator, name the component without its kind: the program has one kind only")
		}
		run = append(run, name)
	}
	for name, value := range texts {
		if value != "" {
			run = append(run, "--"+name+"="+value)
		}
	}
	for name, set := range switches {
		if set {
			run = append(run, "--"+name)
		}
	}
	command := exec.CommandContext(ctx, p.operator, run...)
	command.Stdin, command.Stdout, command.Stderr = p.In, p.Out, p.ErrOut
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return &ExitError{Code: exit.ExitCode()} // the program has said why
	}
	if err != nil {
		return fmt.Errorf("run the operator %s: %w", p.operator, err)
	}
	return nil
}

// revisionsOutput is what diff --revision prints as JSON and YAML.
type revisionsOutput struct {
	typeMeta `json:",inline"`
	From     int64                  `json:"from"`
	To       int64                  `json:"to"`
	Changes  []report.PlannedChange `json:"changes"`
}

// diffRevisions asks the operator what differs between two revisions: only it has the key of the history.
func (f *frame) diffRevisions(ctx context.Context, arguments []string, revisions string, o *output) error {
	first, second, ok := strings.Cut(revisions, "..")
	from, fromErr := strconv.ParseInt(first, 10, 64)
	to, toErr := strconv.ParseInt(second, 10, 64)
	if !ok || fromErr != nil || toErr != nil {
		return usage("--revision %q: write two numbers of \"corbel history\", such as 3..5", revisions)
	}
	c, err := f.component(ctx, arguments)
	if err != nil {
		return err
	}
	for _, revision := range []int64{from, to} {
		if err := c.Kept(revision); err != nil {
			return err
		}
	}
	answer, err := f.ask(ctx, c, preview.Question{From: from, To: to})
	if err != nil {
		return err
	}
	out := revisionsOutput{typeMeta: outputOf("RevisionDiff"), From: from, To: to, Changes: []report.PlannedChange{}}
	if err := json.Unmarshal(answer.Changes, &out.Changes); err != nil {
		return fmt.Errorf("the answer of the operator of %s cannot be read: %w", c, err)
	}
	if o.isText() {
		_, err = io.WriteString(f.Out, planview.Changes(out.Changes, c.Object.GetNamespace()))
	} else {
		err = f.encode(o.format, out)
	}
	if err == nil && len(out.Changes) > 0 {
		err = errNotSo
	}
	return err
}
