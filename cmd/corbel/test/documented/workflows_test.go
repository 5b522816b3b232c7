// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
)

// workflow is what the checks read of a workflow of GitHub Actions.
type workflow struct {
	On          map[string]any `yaml:"on"`
	Permissions *permissions   `yaml:"permissions"`
	Concurrency struct {
		Group string `yaml:"group"`
	} `yaml:"concurrency"`
	Jobs map[string]struct {
		Permissions permissions `yaml:"permissions"`
		Timeout     int         `yaml:"timeout-minutes"`
		Steps       []struct {
			Uses string `yaml:"uses"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// permissions are the rights of the token of a job, by their scope.
type permissions map[string]string

var (
	// target is a target that the Makefile, or what it includes, defines.
	target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	// makeCall is a call of make with its first target.
	makeCall = regexp.MustCompile(`\bmake(?: [A-Z_]+=\S+| -\S+)*(?: ([a-z][a-z-]*))?`)
	// script is a program of the repository that a step runs.
	script = regexp.MustCompile(`\bhack/[a-z-]+\.sh\b`)
	// action is an action with the tag of its major version.
	action = regexp.MustCompile(`^[a-z-]+/[a-z-]+@v[0-9]+$`)
)

// TestWorkflows checks the workflows: they parse, run what the Makefile has, and may do no more than
// they need.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(root + "/.github/workflows/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %d workflows: %v", len(files), err)
	}
	targets := makeTargets(t)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkWorkflow(content, targets); err != nil {
			t.Errorf("%s:\n%v", filepath.Base(file), err)
		}
	}
}

// makeTargets returns the targets of the Makefile.
func makeTargets(t *testing.T) []string {
	t.Helper()
	var targets []string
	for _, name := range []string{"Makefile", "hack/controlplane.mk"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range target.FindAllStringSubmatch(string(content), -1) {
			targets = append(targets, match[1])
		}
	}
	if !slices.Contains(targets, "test") || !slices.Contains(targets, "controlplane") {
		t.Fatalf("the targets of the Makefile are not seen: %q", targets)
	}
	return targets
}

// checkWorkflow returns all that is wrong with a workflow.
func checkWorkflow(content []byte, targets []string) error {
	if err := parseYAML(string(content)); err != nil {
		return err
	}
	var w workflow
	if err := yamlv3.Unmarshal(content, &w); err != nil {
		return err
	}
	var errs []error
	report := func(format string, arguments ...any) { errs = append(errs, fmt.Errorf(format, arguments...)) }
	if len(w.On) == 0 || len(w.Jobs) == 0 {
		report("it runs never, or nothing")
	}
	if w.Permissions == nil {
		report("it has no permissions: those of the repository would apply")
	} else if w.Permissions.writes() {
		report("all its jobs may write: give the right to the one that needs it")
	}
	if w.Concurrency.Group == "" {
		report("it has no concurrency group")
	}
	for name, job := range w.Jobs {
		if job.Timeout == 0 {
			report("job %s has no timeout", name)
		}
		for _, step := range job.Steps {
			if step.Uses != "" && !action.MatchString(step.Uses) {
				report("job %s uses %s: pin the major version", name, step.Uses)
			}
			for _, match := range makeCall.FindAllStringSubmatch(step.Run, -1) {
				if !slices.Contains(targets, match[1]) {
					report("job %s runs %q, which is no target of the Makefile", name, match[0])
				}
				if job.Permissions.writes() {
					report("job %s may write and runs the code of the repository: %s", name, match[0])
				}
			}
			for _, file := range script.FindAllString(step.Run, -1) {
				if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Mode()&0o111 == 0 {
					report("job %s runs %s, which is no program", name, file)
				}
			}
			if strings.Contains(step.Run, "${{") {
				report("job %s puts an expression into a script, where its text would be run: use env", name)
			}
		}
	}
	return errors.Join(errs...)
}

func (p permissions) writes() bool {
	for _, right := range p {
		if right == "write" {
			return true
		}
	}
	return false
}

func TestCheckWorkflow(t *testing.T) {
	const good = "on: {push: }\npermissions: {contents: read}\nconcurrency: {group: a}\njobs: {test: {timeout-minutes: 5, steps: [{uses: actions/checkout@v5}, {run: make test}]}}\n"
	for name, test := range map[string]struct{ old, new, want string }{
		"a workflow that is right":         {},
		"no YAML":                          {"on:", "on: [", "did not find"},
		"a key twice":                      {"jobs:", "on: {}\njobs:", "already"},
		"no event":                         {"on: {push: }", "on: {}", "it runs never, or nothing"},
		"no permissions":                   {"permissions: {contents: read}\n", "", "it has no permissions"},
		"permissions of all":               {"permissions: {contents: read}", "permissions: {contents: write}", "all its jobs may write"},
		"permissions as a word":            {"permissions: {contents: read}", "permissions: write-all", "cannot unmarshal"},
		"no concurrency group":             {"concurrency: {group: a}\n", "", "it has no concurrency group"},
		"no timeout":                       {"timeout-minutes: 5, ", "", "job test has no timeout"},
		"an action by its branch":          {"checkout@v5", "checkout@main", "pin the major version"},
		"a target that does not exist":     {"make test", "make -k X=1 tests", `job test runs "make -k X=1 tests"`},
		"no target":                        {"make test", "make", `job test runs "make"`},
		"a script that does not exist":     {"make test", "hack/none.sh", "job test runs hack/none.sh"},
		"an expression in a script":        {"make test", `"echo ${{ github.ref }}"`, "puts an expression into a script"},
		"code of a change that may write":  {"timeout-minutes: 5", "permissions: {contents: write}, timeout-minutes: 5", "may write and runs the code"},
		"a second mistake in the same run": {"{run: make test}", "{run: make nothing}, {run: make test && make never}", `"make never"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, test.old, test.new, 1)
			if text == good && test.want != "" {
				t.Fatal("the case changes nothing")
			}
			err := checkWorkflow([]byte(text), []string{"test"})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got the error %v, want %q", err, test.want)
			}
		})
	}
}

// TestIssueForms reads the forms for issues. A form with a mistake is not offered.
func TestIssueForms(t *testing.T) {
	fields := map[string][]string{}
	for _, name := range []string{"bug", "feature", "question"} {
		content, err := os.ReadFile(filepath.Join(root, ".github/ISSUE_TEMPLATE", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := parseYAML(string(content)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct {
					Label, Value string
					Options      []string
				}
			}
		}
		if err := yamlv3.Unmarshal(content, &form); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if form.Name == "" || form.Description == "" {
			t.Errorf("%s: a form needs a name and a description", name)
		}
		for i, field := range form.Body {
			switch {
			case field.Type == "markdown" && field.Attributes.Value != "":
				continue
			case field.Type == "textarea" && field.Attributes.Label != "":
			case field.Type == "dropdown" && field.Attributes.Label != "" && len(field.Attributes.Options) > 0:
			default:
				t.Errorf("%s: field %d of the type %q lacks its label, value or options", name, i+1, field.Type)
			}
			if slices.Contains(fields[name], field.ID) {
				t.Errorf("%s: the field %s is defined more than once", name, field.ID)
			}
			fields[name] = append(fields[name], field.ID)
		}
	}
	if diff := cmp.Diff([]string{"versions", "generator", "happened", "component", "more"}, fields["bug"]); diff != "" {
		t.Errorf("fields of the form for bugs (-want +got):\n%s", diff)
	}
}
