// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package planview

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/component"
)

// View is a plan with the facts that its text mentions.
type View struct {
	Plan component.Plan
	// Operator names the operator that made the plan, such as "shop.example.com v1.3.0"; it may be
	// empty.
	Operator string
	// Current is the revision that the component has; 0 if it has none, or if that is not known.
	Current int64
	// Delete: the plan is about the deletion of the component.
	Delete bool
	// Note is a sentence about the component, such as that it is suspended.
	Note string
	// Hidden is the number of objects with fields that are shown without values.
	Hidden int
}

// Exit codes of a plan.
const (
	// ExitNothing: nothing changes.
	ExitNothing = 0
	// ExitError: there is no plan.
	ExitError = 1
	// ExitChanges: objects are created or changed in place.
	ExitChanges = 2
	// ExitDisruptive: objects are deleted, recreated or orphaned, or pods are restarted.
	ExitDisruptive = 3
	// ExitBlocked: the server refuses a change, or something blocks it.
	ExitBlocked = 4
)

// ExitCode returns the code for a plan, by its most serious change.
func ExitCode(plan component.Plan) int {
	code := ExitNothing
	for _, change := range plan.Changes {
		code = max(code, exitCodeOf(change))
	}
	return code
}

func exitCodeOf(change report.PlannedChange) int {
	switch change.Class {
	case report.ChangeRefused, report.ChangeBlocked:
		return ExitBlocked
	case report.ChangeDelete, report.ChangeRecreate, report.ChangeRestartsPods, report.ChangeOrphan:
		return ExitDisruptive
	}
	return ExitChanges
}

// classes are the sign and the word for each class of changes.
var classes = map[report.ChangeClass]struct{ sign, word string }{
	report.ChangeCreate:       {"+", ""},
	report.ChangeUpdate:       {"~", ""},
	report.ChangeRestartsPods: {"~", "restarts pods"},
	report.ChangeRecreate:     {"±", "recreated"},
	report.ChangeDelete:       {"-", ""},
	report.ChangeOrphan:       {"<", "orphaned"},
	report.ChangeAdopt:        {">", "adopted"},
	report.ChangeRefused:      {"!", "refused"},
	report.ChangeBlocked:      {"!", "blocked"},
}

// Text returns the plan for people: a title, the changes by batch, and a line that counts them.
func (v View) Text() string {
	var out strings.Builder
	out.WriteString(v.title() + "\n")
	if v.Note != "" {
		out.WriteString(v.Note + "\n")
	}
	p := v.Plan
	rows, last := rowsOf(p.Changes, p.Namespace), -1
	batches := len(rows) > 0 && p.Changes[len(rows)-1].Batch != p.Changes[0].Batch
	widths := widthsOf(rows)
	if len(rows) > 0 {
		out.WriteString("\n")
	}
	for i, change := range p.Changes {
		if change.Batch != last {
			last = change.Batch
			if until := waitsOf(p, change.Batch); batches || until != "" {
				out.WriteString(batchTitle(change.Batch, until) + "\n")
			}
		}
		for _, line := range rows[i].lines(widths) {
			out.WriteString("  " + line + "\n")
		}
	}
	if len(rows) > 0 {
		out.WriteString("\n")
	}
	out.WriteString(Summary(p.Changes) + "\n")
	for _, line := range v.remarks() {
		out.WriteString(line + "\n")
	}
	return sentence.Printable(out.String())
}

// title names the component and the target of the plan.
func (v View) title() string {
	p := v.Plan
	title := p.Kind + " " + strings.TrimPrefix(p.Namespace+"/"+p.Name, "/")
	var parts []string
	switch {
	case v.Delete:
		parts = append(parts, "deletion")
	case p.RollbackTo != 0:
		parts = append(parts, fmt.Sprintf("revision %d, rolled back to %d", p.Revision, p.RollbackTo))
	case p.Revision != 0 && v.Current != 0 && v.Current != p.Revision:
		parts = append(parts, fmt.Sprintf("revision %d → %d", v.Current, p.Revision))
	case p.Revision != 0:
		parts = append(parts, fmt.Sprintf("revision %d", p.Revision))
	}
	if v.Operator != "" {
		parts = append(parts, "operator "+v.Operator)
	}
	if p.Remote {
		parts = append(parts, "in another cluster")
	}
	if p.Hash != "" {
		parts = append(parts, "plan "+p.Hash)
	}
	if len(parts) == 0 {
		return title
	}
	return title + ": " + strings.Join(parts, ", ")
}

func batchTitle(batch int, until string) string {
	title := fmt.Sprintf("  batch %d", batch)
	if batch == 0 {
		title = "  not written"
	}
	if until != "" {
		title += ", after " + until
	}
	return title
}

// waitsOf names the objects that a batch waits for.
func waitsOf(p component.Plan, batch int) string {
	var names []string
	for _, wait := range p.Until {
		if name := wait.Key.Kind + " " + nameOf(wait.Key, p.Namespace); wait.Batch == batch && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if more := len(names) - 3; more > 0 {
		names = append(names[:3], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// nameOf leaves out the namespace that all have.
func nameOf(key report.Key, namespace string) string {
	if key.Namespace == "" || key.Namespace == namespace {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// row is a change as a row of columns, with further lines of the last one.
type row struct {
	sign, kind, name, word string
	details                []string
}

func rowsOf(changes []report.PlannedChange, namespace string) []row {
	rows := make([]row, 0, len(changes))
	for _, change := range changes {
		class := classes[change.Class]
		r := row{sign: class.sign, kind: change.Key.Kind, name: nameOf(change.Key, namespace), word: class.word}
		if change.Class == report.ChangeRecreate {
			r.word = map[string]string{"delete": "deleted first", "create": "recreated"}[change.Verb]
		}
		if change.Hook != "" {
			r.word = strings.TrimPrefix(r.word+", "+change.Hook+" hook", ", ")
		}
		if change.Message != "" {
			r.details = append(r.details, sentence.OneLine(change.Message))
		}
		for _, field := range change.Fields {
			r.details = append(r.details, fieldText(field))
		}
		if change.MoreFields > 0 {
			r.details = append(r.details, fmt.Sprintf("and %d more fields", change.MoreFields))
		}
		if change.DependsOnCluster != "" {
			r.details = append(r.details, "(depends on the cluster: "+change.DependsOnCluster+")")
		}
		rows = append(rows, r)
	}
	return rows
}

// fieldText returns a field with its values on one line.
func fieldText(field report.FieldChange) string {
	short := func(value string) string {
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
			return fmt.Sprintf("%q", value)
		}
		return value
	}
	switch {
	case field.Old == "":
		return field.Path + "  → " + short(field.New)
	case field.New == "":
		return field.Path + "  " + short(field.Old) + " → (removed)"
	}
	return field.Path + "  " + short(field.Old) + " → " + short(field.New)
}

// widthsOf returns the widths of the columns before the last.
func widthsOf(rows []row) (widths [3]int) {
	for _, r := range rows {
		for i, cell := range []string{r.kind, r.name, r.word} {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func (r row) lines(widths [3]int) []string {
	pad := func(text string, width int) string {
		return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
	}
	first := r.sign + " " + pad(r.kind, widths[0]) + "  " + pad(r.name, widths[1])
	indent := utf8.RuneCountInString(first)
	if widths[2] > 0 {
		first += "  " + pad(r.word, widths[2])
		indent += 2 + widths[2]
	}
	if len(r.details) == 0 {
		return []string{strings.TrimRight(first, " ")}
	}
	lines := []string{first + "  " + r.details[0]}
	for _, detail := range r.details[1:] {
		lines = append(lines, strings.Repeat(" ", indent+2)+detail)
	}
	return lines
}

// Summary counts the changes of a plan in one sentence.
func Summary(changes []report.PlannedChange) string {
	if len(changes) == 0 {
		return "Nothing changes."
	}
	writes, by := 0, map[report.ChangeClass]map[report.Key]bool{}
	for _, change := range changes {
		if by[change.Class] == nil {
			by[change.Class] = map[report.Key]bool{}
		}
		by[change.Class][change.Key] = true
		if exitCodeOf(change) != ExitBlocked {
			writes++
		}
	}
	count := func(class report.ChangeClass) int { return len(by[class]) }
	var parts []string
	add := func(n int, word, more string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s%s", n, word, more))
		}
	}
	restarts := ""
	if n := count(report.ChangeRestartsPods); n > 0 {
		restarts = fmt.Sprintf(" (%d with a restart of pods)", n)
	}
	add(count(report.ChangeCreate), "created", "")
	add(count(report.ChangeUpdate)+count(report.ChangeRestartsPods), "updated", restarts)
	add(count(report.ChangeAdopt), "adopted", "")
	add(count(report.ChangeRecreate), "recreated", "")
	add(count(report.ChangeDelete), "deleted", "")
	add(count(report.ChangeOrphan), "orphaned", "")
	add(count(report.ChangeRefused), "refused", "")
	add(count(report.ChangeBlocked), "blocked", "")
	return fmt.Sprintf("%s: %s. Nothing was written.", number(writes, "write"), strings.Join(parts, ", "))
}

func number(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// remarks are lines about further findings and unknown facts.
func (v View) remarks() []string {
	var lines []string
	p := v.Plan
	if p.Turn != "" {
		lines = append(lines, "Not applied yet: "+p.Turn)
	}
	for _, wait := range p.Waiting {
		lines = append(lines, fmt.Sprintf("Stays as it is: %s: %s", wait.Key, sentence.OneLine(wait.Message)))
	}
	for _, deviation := range p.Drifted {
		lines = append(lines, fmt.Sprintf("Drifted, and not repaired: %s: %s", deviation.Key, sentence.OneLine(fmt.Sprint(deviation.Drift))))
	}
	for _, note := range p.Notes {
		lines = append(lines, fmt.Sprintf("Note about %s: %s", note.Key, sentence.OneLine(note.Message)))
	}
	if v.Hidden > 0 {
		lines = append(lines, fmt.Sprintf("The values of %s are not shown, because they are in another namespace or cluster.", number(v.Hidden, "object")))
	}
	if p.MissingRights != "" {
		lines = append(lines, "Rights are missing:\n"+strings.TrimRight(p.MissingRights, "\n"))
	}
	for _, sentence := range p.Incomplete {
		lines = append(lines, "Not known: "+sentence)
	}
	return lines
}

// Changes returns the differences between two sets of manifests as text.
func Changes(changes []report.PlannedChange, namespace string) string {
	rows := rowsOf(changes, namespace)
	widths := widthsOf(rows)
	var out strings.Builder
	for _, r := range rows {
		out.WriteString(strings.Join(r.lines(widths), "\n") + "\n")
	}
	return sentence.Printable(out.String())
}
