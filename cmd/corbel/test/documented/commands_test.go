// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/corbel-run/corbel/cmd/corbel/internal/command"
)

// shim stands for programs that a document calls and that the test does not run: it writes down how it is called.
// What the next commands of a document need, it makes: the clone, and the project. It reads its input as the program would.
const shim = `#!/bin/bash
name=${0##*/}
printf '%s\0' "$PWD" "$name" "$@" >"$(mktemp "$CALLS/XXXXXXXX")"
case "$name $1" in
"git clone") folder=$(basename "$2" .git) && mkdir -p "$folder" && ln -s "$REPOSITORY"/* "$folder" ;;
"corbel init") [ "${2#-}" = "$2" ] && mkdir -p "$2" && cp "$REPOSITORY/cmd/corbel/internal/scaffold/templates/common/Makefile.tmpl" "$2/Makefile" ;;
"helm template") echo "kind: ConfigMap" ;;
"jq "*) exec cat ;;
esac
exit 0
`

// shims are the programs that a shim stands for. The files that cp copies have to exist.
var shims = []string{"corbel", "docker", "git", "go", "helm", "jq", "ko", "make", "shop"}

// kubectlShim runs kubectl with the cluster of the tests. Writes are dry runs, so that the order of the documents does
// not matter; what would not end does; and pods of the simulator have no logs.
const kubectlShim = `#!/bin/bash
options=()
for argument; do
	case $argument in
	-w | --watch) ;;
	logs) options+=(get) ;;
	*) options+=("$argument") ;;
	esac
done
while [ "${1#-}" != "$1" ]; do shift; [ "${1#-}" = "$1" ] && shift; done
case $1 in
corbel) exec "${0%/*}/corbel" "${@:2}" ;;
annotate | apply | delete | label | patch | scale | set) options+=(--dry-run=server) ;;
create) # it may be there already
	[[ " $* " == *" --dry-run=client "* ]] && exec "$KUBECTL" "${options[@]}"
	output=$("$KUBECTL" "${options[@]}" --dry-run=server 2>&1) || [[ $output == *"already exists"* ]] || failed=1
	echo "$output"
	exit ${failed:-0}
	;;
wait | rollout) options+=(--timeout=20s) ;;
esac
exec "$KUBECTL" "${options[@]}"
`

// step is a command of a document.
type step struct {
	line    int
	command string
}

// steps returns the commands of a block: of a session, those after the prompt, with the lines that they read.
func (b block) steps() []step {
	lines := strings.Split(strings.TrimSuffix(b.text, "\n"), "\n")
	if b.language == "sh" {
		return []step{{b.line + 1, strings.Join(lines, "\n")}}
	}
	var found []step
	end := ""
	for i, line := range lines {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch last := len(found) - 1; {
		case end != "":
			found[last].command += "\n" + line
			if line == end {
				end = ""
			}
		case isCommand:
			found = append(found, step{line: b.line + 1 + i, command: command})
			if _, mark, reads := strings.Cut(command, "<<"); reads {
				end = strings.Fields(mark)[0]
			}
		}
	}
	return found
}

// span is inline code.
var span = regexp.MustCompile("`([^`]+)`")

// programCall is inline code that is a command. One with an ellipsis is none.
var programCall = regexp.MustCompile(`^(kubectl|make|go|git|helm|corbel) [a-z.-]`)

// inlineCommands returns the commands in the prose and the tables of a document.
func (p page) inlineCommands() []step {
	var found []step
	_, prose := p.split()
	if p.name == "docs/performance.md" {
		return nil // make bench writes it, and runs them
	}
	generated := false // what a test writes, it proves
	for i, line := range prose {
		if strings.HasPrefix(line, "<!-- ") {
			generated = strings.Contains(line, ": written by ")
		}
		if generated {
			continue
		}
		for _, match := range span.FindAllStringSubmatch(line, -1) {
			text := strings.ReplaceAll(match[1], `\|`, "|")
			if programCall.MatchString(text) && !isMention(text) && !strings.ContainsAny(text, "…<>[") && !strings.Contains(text, "...") {
				found = append(found, step{line: i + 1, command: text})
			}
		}
	}
	return found
}

// isMention reports whether inline code speaks of a command of kubectl or helm, such as "kubectl wait", without an object.
func isMention(text string) bool {
	words := slices.DeleteFunc(strings.Fields(text), func(word string) bool { return strings.HasPrefix(word, "-") })
	return (words[0] == "kubectl" || words[0] == "helm") && len(words) < 3
}

// workbench is where commands of documents run.
type workbench struct {
	bin, fixtures string
	environment   []string
}

// newWorkbench makes the programs that the commands find.
func newWorkbench(t *testing.T) *workbench {
	t.Helper()
	cluster := sharedCluster(t)
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	w := &workbench{bin: t.TempDir(), fixtures: t.TempDir()}
	for _, name := range shims {
		writeFile(t, filepath.Join(w.bin, name), shim, 0o755)
	}
	writeFile(t, filepath.Join(w.bin, "kubectl"), kubectlShim, 0o755)
	for name, content := range cluster.files {
		writeFile(t, filepath.Join(w.fixtures, name), content, 0o644)
	}
	w.environment = append(os.Environ(), "PATH="+w.bin+":"+os.Getenv("PATH"), "REPOSITORY="+repository, "KUBECTL="+cluster.kubectl,
		"KUBECONFIG="+cluster.kubeconfig, "KUBECACHEDIR="+t.TempDir(), "KUBERC=off")
	return w
}

func writeFile(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// call is how a program was called.
type call struct {
	folder string
	args   []string // the first is the program
}

// run runs commands one after the other in one shell, and returns what each prints, how programs were called, and the
// error of the first that fails.
func (w *workbench) run(t *testing.T, steps []step) (printed []string, calls []call, err error) {
	t.Helper()
	folder, recorded := t.TempDir(), t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(w.fixtures)); err != nil {
		t.Fatal(err)
	}
	const mark = "\x1enext\n"
	var script strings.Builder
	script.WriteString("set -e -o pipefail\n")
	for _, s := range steps {
		fmt.Fprintf(&script, "%s\nwait\nprintf '\\036next\\n'\n", s.command)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	shell.Dir, shell.Env = folder, append(slices.Clone(w.environment), "CALLS="+recorded)
	output, err := shell.CombinedOutput()
	files, globErr := filepath.Glob(filepath.Join(recorded, "*"))
	if globErr != nil {
		t.Fatal(globErr)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
		calls = append(calls, call{words[0], words[1:]})
	}
	return strings.Split(string(output), mark), calls, err
}

// TestEveryCommandRuns runs the commands of all documents. kubectl works with a cluster that has what the documents speak
// of; of other programs the arguments are checked.
func TestEveryCommandRuns(t *testing.T) {
	w, targets := newWorkbench(t), makeTargets(t)
	total := 0
	for _, p := range pages(t) {
		blocks, _ := p.split()
		for _, b := range blocks {
			if b.language != "sh" && (b.language != "console" || p.name == "docs/tutorial.md") {
				continue
			}
			total++
			t.Run(fmt.Sprintf("%s:%d", p.name, b.line), func(t *testing.T) {
				t.Parallel()
				steps := b.steps()
				printed, calls, err := w.run(t, steps)
				if err != nil {
					t.Errorf("%v\n%s", err, strings.Join(printed, ""))
				}
				for _, c := range calls {
					if err := checkCall(c, targets); err != nil {
						t.Errorf("%s: %v", strings.Join(c.args, " "), err)
					}
				}
			})
		}
		for _, s := range p.inlineCommands() {
			total++
			t.Run(fmt.Sprintf("%s:%d", p.name, s.line), func(t *testing.T) {
				t.Parallel()
				printed, calls, err := w.run(t, []step{s})
				// The object of an example need not exist, but its type does.
				if output := strings.Join(printed, ""); err != nil && !strings.Contains(output, "Error from server (NotFound)") {
					t.Errorf("%s: %v\n%s", s.command, err, output)
				}
				for _, c := range calls {
					if err := checkCall(c, targets); err != nil {
						t.Errorf("%s: %v", s.command, err)
					}
				}
			})
		}
	}
	if total < 40 {
		t.Errorf("there are %d commands only: something is not seen", total)
	}
}

// target is a target that the Makefile, or what it includes, defines.
var target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)

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

// checkCall says what is wrong with the arguments of a program.
func checkCall(c call, targets []string) error {
	switch c.args[0] {
	case "make":
		return checkMake(c, targets)
	case "go":
		return checkGo(c)
	case "corbel":
		return checkCommand(command.New(), c.args[1:])
	case "helm":
		return checkHelm(c.args[1:])
	case "shop":
		return checkCommand(shopProgram(), c.args[1:])
	}
	return nil
}

// checkMake looks for the targets, and for what reads the variables.
func checkMake(c call, targets []string) error {
	content, err := os.ReadFile(filepath.Join(c.folder, "Makefile"))
	text := string(content)
	if err != nil { // prose speaks of the repository, or of a project
		ours, _ := os.ReadFile(filepath.Join(root, "Makefile"))
		scaffold, err := os.ReadFile(filepath.Join(root, "cmd/corbel/internal/scaffold/templates/common/Makefile.tmpl"))
		if err != nil {
			return err
		}
		text = string(ours) + string(scaffold)
	}
	for _, match := range target.FindAllStringSubmatch(text, -1) {
		targets = append(targets, match[1])
	}
	for _, argument := range c.args[1:] {
		switch name, _, sets := strings.Cut(argument, "="); {
		case sets && !strings.Contains(text, "$("+name+")") && !strings.Contains(text, "$(or $("+name) && !strings.Contains(text, name+" ?="):
			return fmt.Errorf("nothing in the Makefile reads %s", name)
		case !sets && !strings.HasPrefix(argument, "-") && !slices.Contains(targets, argument) && !strings.Contains(text, "\n"+argument+":"):
			return fmt.Errorf("the Makefile has no target %s", argument)
		}
	}
	return nil
}

var (
	// versioned is a package of another module in its version.
	versioned = regexp.MustCompile(`^([a-z0-9.-]+\.[a-z]+/\S+)@(\S+)$`)
	// goFlags are the flags of go test and go run in documents; others have to be defined by a test of ours.
	goFlags = []string{"-run", "-v", "-race", "-count", "-short", "-bench", "-tags", "-o"}
)

// checkGo looks for the packages, modules and flags that a call of go names.
func checkGo(c call) error {
	var modules string
	for _, name := range []string{"go.mod", "hack/tools/go.mod"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		modules += string(content)
	}
	if len(c.args) > 1 && !slices.Contains([]string{"run", "test", "get", "install", "build", "vet", "doc", "mod", "tool", "generate", "env"}, c.args[1]) {
		return fmt.Errorf("go has no command %s", c.args[1])
	}
	for _, argument := range c.args[min(2, len(c.args)):] {
		match := versioned.FindStringSubmatch(argument)
		folder := filepath.Join(c.folder, strings.TrimSuffix(argument, "..."))
		switch {
		case match != nil:
			if !slices.ContainsFunc(strings.Split(modules, "\n"), func(line string) bool {
				module, version, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "require "), " ")
				version, _, _ = strings.Cut(version, " ")
				within := match[1] == module || strings.HasPrefix(match[1], module+"/")
				return module != "" && within && (match[2] == version || match[2] == "latest")
			}) && !strings.HasPrefix(match[1], "github.com/corbel-run/corbel") {
				return fmt.Errorf("neither go.mod nor hack/tools/go.mod requires %s in this version", argument)
			}
			return nil // the arguments are those of that program
		case strings.HasPrefix(argument, "github.com/corbel-run/corbel/"):
			if _, err := os.Stat(filepath.Join(root, strings.TrimPrefix(argument, "github.com/corbel-run/corbel/"))); err != nil {
				return err
			}
			return nil
		case strings.HasPrefix(argument, "-"):
			name, _, _ := strings.Cut(argument, "=")
			if slices.Contains(goFlags, name) {
				continue
			}
			if defined, err := definesFlag(strings.TrimPrefix(name, "-")); err != nil || !defined {
				return errors.Join(err, fmt.Errorf("no test defines the flag %s", name))
			}
		case argument == "./..." || argument == ".":
		case strings.HasPrefix(argument, "./"):
			if _, err := os.Stat(folder); err != nil {
				if _, err := os.Stat(filepath.Join(root, path.Clean(strings.TrimSuffix(argument, "...")))); err != nil {
					return fmt.Errorf("there is no package %s", argument)
				}
			}
		}
	}
	return nil
}

// definesFlag reports whether a package of ours defines a flag for its tests.
func definesFlag(name string) (bool, error) {
	definition := regexp.MustCompile(`\bflag\.[A-Z][A-Za-z]*\((&[a-zA-Z.]+, )?"` + regexp.QuoteMeta(name) + `"`)
	found := false
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, entry fs.DirEntry, err error) error {
		switch base := path.Base(file); {
		case err != nil || found:
			return err
		case entry.IsDir() && (base == "bin" || len(base) > 1 && base[0] == '.'):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(file) != ".go":
			return nil
		}
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		found = definition.Match(content)
		return err
	})
	return found, err
}

// helmFlags are those of Helm in documents, by the command.
var helmFlags = map[string][]string{
	"install":   {"--create-namespace", "--set"},
	"upgrade":   {"--install", "--set", "--set-file", "--reuse-values"},
	"registry":  {},
	"uninstall": {},
	"template":  {"--set", "--values"},
	"pull":      {},
	"list":      {},
	"get":       {},
}

// helmGlobalFlags are those of all commands.
var helmGlobalFlags = []string{"-n", "--namespace"}

// checkHelm compares a call of Helm with the commands and flags that documents use. Its own parser is not among our modules.
func checkHelm(args []string) error {
	if len(args) == 0 {
		return nil
	}
	flags, known := helmFlags[args[0]]
	if !known {
		return fmt.Errorf("add the command %s to helmFlags, after a look at helm help", args[0])
	}
	for _, argument := range args[1:] {
		if name, _, _ := strings.Cut(argument, "="); strings.HasPrefix(name, "-") && !slices.Contains(flags, name) && !slices.Contains(helmGlobalFlags, name) {
			return fmt.Errorf("add %s of helm %s to helmFlags, after a look at helm help", name, args[0])
		}
	}
	return nil
}

// checkCommand looks for the command and its flags in those of a program.
func checkCommand(program *cobra.Command, args []string) error {
	program.InitDefaultCompletionCmd(args...)
	found, rest, err := program.Find(args)
	if err != nil {
		return err
	}
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	return found.ValidateArgs(found.Flags().Args())
}
