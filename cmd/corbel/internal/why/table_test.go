// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/test/env"
)

// rewrite writes the table of the document, with what kubectl describe shows now.
var rewrite = flag.Bool("rewrite-why", false, "write the table of docs/howto-why.md")

// document has the table of the causes, between two marks.
const (
	document  = "../../../../docs/howto-why.md"
	beginning = "<!-- causes: written by `go test ./cmd/corbel/internal/why -rewrite-why` -->\n"
	ending    = "<!-- end of causes -->\n"
)

// row is a cause in the table.
type row struct{ name, why, describe string }

var (
	podName = regexp.MustCompile(`\b(web|db|backup)-[a-z0-9]+(?:-[a-z0-9]{5})?\b`)
	since   = regexp.MustCompile(` \(since [^)]+\)`)
	points  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

func masked(text string) string {
	return points.ReplaceAllString(since.ReplaceAllString(podName.ReplaceAllString(text, "$1-x"), ""), "…")
}

// record returns the row of a scenario, with what kubectl describe shows of the first object that is to blame.
func (b *bed) record(s scenario, chain Chain) row {
	b.Helper()
	cause := chain.Cause()
	said := cause.Object.String() + ": " + cause.Message
	if len(chain.Links) == 0 && len(chain.Notices) > 0 {
		said = "Note: " + chain.Notices[0]
	}
	r := row{name: s.name, why: code(said) + " " + code(chain.Command)}
	if !*rewrite {
		return r
	}
	object := chain.Component
	if len(chain.Links) > 0 {
		object = chain.Links[0].Object
	}
	b.tries(chain.Command)
	arguments := strings.Fields(strings.TrimPrefix(object.kubectl("describe"), "kubectl "))
	out, err := exec.CommandContext(b.Context(), env.Shared(b).Program("kubectl"), append(arguments, "--kubeconfig", env.Shared(b).Kubeconfig())...).CombinedOutput()
	if err != nil {
		r.describe = code(masked(strings.TrimSpace(string(out))))
		return r
	}
	r.describe = object.Kind + ": " + shown(string(out))
	return r
}

// tries runs the command if it only reads; what it reads may not exist.
func (b *bed) tries(command string) {
	b.Helper()
	if strings.Contains(command, " annotate ") || strings.Contains(command, " resume ") || strings.Contains(command, " scale ") {
		return
	}
	shell := exec.CommandContext(b.Context(), "sh", "-c", command)
	shell.Env = append(os.Environ(), "KUBECONFIG="+env.Shared(b).Kubeconfig(), "PATH="+filepath.Dir(env.Shared(b).Program("kubectl"))+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "not found") && strings.TrimSpace(string(out)) != "no" {
		b.Errorf("%s: %v: %s", command, err, out)
	}
	b.Logf("%s\n%.300s", command, out)
}

// shown returns the warnings among the events that kubectl describe shows, or that there are none.
func shown(described string) string {
	_, events, _ := strings.Cut(described, "\nEvents:")
	var messages []string
	for line := range strings.Lines(events) {
		fields := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)
		if len(fields) < 5 || fields[0] != "Warning" {
			continue
		}
		if text := code(masked(fields[1] + ": " + fields[len(fields)-1])); !slices.Contains(messages, text) {
			messages = append(messages, text)
		}
	}
	if len(messages) > 0 {
		return messages[len(messages)-1]
	}
	// Without a warning, the conditions: of a built-in type a table, of a custom resource a list.
	if m := badCondition.FindStringSubmatch(described); m != nil {
		return code(strings.Join(m[1:], " "))
	}
	if m := readyMessage.FindStringSubmatch(described); m != nil {
		return code(masked(m[1]))
	}
	return "nothing about it"
}

var (
	badCondition = regexp.MustCompile(`(?m)^  (Available|ReplicaFailure) +(False|True) +(\w*(?:Unavailable|Failed\w*))$`)
	readyMessage = regexp.MustCompile(`(?m)^ +Message: +(.+)$`)
)

// code is a text as a table of Markdown shows it literally.
func code(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
	if len(text) > 240 {
		text = text[:240] + "…"
	}
	return "`" + text + "`"
}

// compareTable compares the table of the document with what was found, but for what kubectl describe shows: that is recorded.
func compareTable(t *testing.T, rows []row) {
	t.Helper()
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(content), beginning)
	table, after, ok := strings.Cut(rest, ending)
	if !ok {
		t.Fatalf("%s has no place for the table of the causes", document)
	}
	if *rewrite {
		var b strings.Builder
		b.WriteString("| cause | `corbel why`: the cause, and the next command | `kubectl describe` of the dependent |\n|---|---|---|\n")
		for _, r := range rows {
			b.WriteString("| " + r.name + " | " + masked(r.why) + " | " + r.describe + " |\n")
		}
		if err := os.WriteFile(document, []byte(before+beginning+b.String()+ending+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	var got, want []string
	for _, r := range rows {
		got = append(got, r.name+" | "+masked(r.why))
	}
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), " | "); len(cells) == 3 && strings.HasPrefix(line, "| a") {
			want = append(want, strings.ReplaceAll(strings.TrimPrefix(cells[0], "| ")+" | "+cells[1], "\x00", `\|`))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs; write it with: go test ./cmd/corbel/internal/why -rewrite-why\n%s", document, diff)
	}
}
