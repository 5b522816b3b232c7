// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package planview

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/component"
)

// Row is a component of a table: its plan, or why there is none.
type Row struct {
	// Component is its namespace and name.
	Component string
	View      View
	Err       error
}

// Code returns the exit code of the row.
func (r Row) Code() int {
	if r.Err != nil {
		return ExitError
	}
	return ExitCode(r.View.Plan)
}

// Table returns one line for each component of a kind, and a line that counts them.
func Table(kind string, rows []Row) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, strings.ToUpper(kind)+"\tWRITES\tRESTARTS\tDELETES\tBLOCKED\tNOTE")
	changed, failed, all := 0, 0, [4]int{}
	for _, row := range rows {
		if row.Err != nil {
			failed++
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\tthere is no plan: %s\n", row.Component, strings.ReplaceAll(row.Err.Error(), "\n", "; "))
			continue
		}
		counts := countsOf(row.View.Plan)
		for i, n := range counts {
			all[i] += n
		}
		if len(row.View.Plan.Changes) > 0 {
			changed++
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%s\n", row.Component, counts[0], counts[1], counts[2], counts[3], row.View.Note)
	}
	_ = table.Flush() // into memory
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	text := strings.Join(lines, "\n") + fmt.Sprintf("%d of %d change: %s, %s, %s, %d blocked or refused.",
		changed, len(rows), number(all[0], "write"), number(all[1], "restart"), number(all[2], "deletion"), all[3])
	if failed > 0 {
		text += fmt.Sprintf(" %d cannot be planned.", failed)
	}
	return text + " Nothing was written.\n"
}

// countsOf returns the number of writes of a plan, of workloads that restart pods, of objects that are deleted or
// recreated, and of objects that are blocked or refused.
func countsOf(p component.Plan) [4]int {
	writes := 0
	for _, change := range p.Changes {
		if exitCodeOf(change) != ExitBlocked {
			writes++
		}
	}
	return [4]int{
		writes, p.Total(report.ChangeRestartsPods), p.Total(report.ChangeDelete) + p.Total(report.ChangeRecreate),
		p.Total(report.ChangeBlocked) + p.Total(report.ChangeRefused),
	}
}

// APIVersion is the apiVersion of documents.
const APIVersion = "corbel.run/cli/v1"

// document is a plan for programs.
type document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Operator   string          `json:"operator,omitempty"`
	Component  string          `json:"component,omitempty"`
	Current    int64           `json:"currentRevision,omitempty"`
	Delete     bool            `json:"delete,omitempty"`
	Note       string          `json:"note,omitempty"`
	Hidden     int             `json:"hidden,omitempty"`
	Error      string          `json:"error,omitempty"`
	ExitCode   int             `json:"exitCode"`
	Plan       *component.Plan `json:"plan,omitempty"`
}

// list is several plans for programs.
type list struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Items      []document `json:"items"`
}

func (v View) document() document {
	return document{
		APIVersion: APIVersion, Kind: "Plan", Operator: v.Operator, Current: v.Current, Delete: v.Delete, Note: v.Note, Hidden: v.Hidden,
		ExitCode: ExitCode(v.Plan), Plan: &v.Plan,
	}
}

// Format returns the plan in a format: text, json or yaml.
func (v View) Format(format string) (string, error) {
	if format == "text" {
		return v.Text(), nil
	}
	return encode(format, v.document())
}

// FormatAll returns the plans of components of a kind in a format: text, json or yaml.
func FormatAll(format, kind string, rows []Row) (string, error) {
	if format == "text" {
		return Table(kind, rows), nil
	}
	all := list{APIVersion: APIVersion, Kind: "PlanList", Items: []document{}}
	for _, row := range rows {
		d := row.View.document()
		if row.Err != nil {
			d = document{APIVersion: APIVersion, Kind: "Plan", Error: row.Err.Error()}
		}
		d.Component, d.ExitCode = row.Component, row.Code()
		all.Items = append(all.Items, d)
	}
	return encode(format, all)
}

func encode(format string, value any) (string, error) {
	var text []byte
	var err error
	switch format {
	case "json":
		text, err = json.MarshalIndent(value, "", "  ")
		text = []byte(sentence.Printable(string(text)) + "\n")
	case "yaml":
		text, err = yaml.Marshal(value)
	default:
		return "", fmt.Errorf("the format %q is none of text, json and yaml", format)
	}
	return string(text), err
}
