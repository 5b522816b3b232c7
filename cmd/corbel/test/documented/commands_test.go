// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/corbel-run/corbel/cmd/corbel/internal/command"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/operator"
	"github.com/corbel-run/corbel/test/check"
)

// call is a call of a program in a document.
type call struct {
	line  int
	words []string // the first is the program
}

var (
	// span is inline code.
	span = regexp.MustCompile("`([^`]+)`")
	// separator is what stands between the calls of a line, or a comment at its end.
	separator = regexp.MustCompile(`\||&&|;|\s#.*`)
	// word is a word of a call; what is quoted in it may have spaces.
	word = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`)
	// assignment sets a variable for a call.
	assignment = regexp.MustCompile(`^[A-Z_]+=`)
)

// calls returns the calls in the blocks and in the inline code of a document. Inline code with an ellipsis or a placeholder is none.
func (p page) calls() []call {
	var found []call
	add := func(line int, text string) {
		for _, part := range separator.Split(text, -1) {
			words := word.FindAllString(part, -1)
			for len(words) > 0 && assignment.MatchString(words[0]) {
				words = words[1:]
			}
			if len(words) > 0 {
				found = append(found, call{line, words})
			}
		}
	}
	blocks, prose := p.split()
	for _, b := range blocks {
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", "")) {
			if text, afterPrompt := strings.CutPrefix(line, "$ "); afterPrompt || b.language == "sh" {
				add(b.line, text)
			}
		}
	}
	for i, line := range prose {
		for _, match := range span.FindAllStringSubmatch(line, -1) {
			if !strings.ContainsAny(match[1], "…<>[") && !strings.Contains(match[1], "...") {
				add(i+1, match[1])
			}
		}
	}
	return found
}

// TestEveryCommandOfTheDocumentsExists compares the calls of corbel, of the program of the example and of make in all documents with their
// commands, flags, targets and variables, and looks for the packages of those of go.
func TestEveryCommandOfTheDocumentsExists(t *testing.T) {
	programs := map[string]func() *cobra.Command{"corbel": command.New, "shop": operator.Options[*shopv1alpha1.Shop]{Name: "shop"}.Command}
	var makefiles string
	for _, name := range []string{"Makefile", "hack/controlplane.mk", "cmd/corbel/internal/scaffold/templates/common/Makefile.tmpl"} {
		content := check.Must(os.ReadFile(filepath.Join(root, name)))(t)
		makefiles += "\n" + string(content)
	}
	total := 0
	for _, p := range pages(t) {
		for _, c := range p.calls() {
			var err error
			switch name := c.words[0]; {
			case name == "make":
				err = checkMake(makefiles, c.words[1:])
			case name == "kubectl" && len(c.words) > 1 && c.words[1] == "corbel":
				err = checkCommand(command.New(), c.words[2:])
			case name == "go":
				err = checkPaths(c.words[1:])
			case programs[name] != nil:
				err = checkCommand(programs[name](), c.words[1:])
			default:
				continue
			}
			total++
			if err != nil {
				t.Errorf("%s:%d: %s: %v", p.name, c.line, strings.Join(c.words, " "), err)
			}
		}
	}
	if total < 200 {
		t.Errorf("there are %d commands only: something is not seen", total)
	}
}

// checkMake looks for the targets, and for what reads the variables.
func checkMake(makefiles string, args []string) error {
	isIn := func(text string) bool { return strings.Contains(makefiles, text) }
	for _, argument := range args {
		switch name, _, sets := strings.Cut(argument, "="); {
		case sets && !slices.ContainsFunc([]string{"$(" + name + ")", "$(or $(" + name, name + " ?="}, isIn):
			return fmt.Errorf("nothing in a Makefile reads %s", name)
		case !sets && !strings.HasPrefix(argument, "-") && !isIn("\n"+argument+":"):
			return fmt.Errorf("no Makefile has the target %s", argument)
		}
	}
	return nil
}

// checkPaths looks for the packages.
func checkPaths(args []string) error {
	for _, argument := range args {
		if !strings.HasPrefix(argument, "./") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(argument, "..."))); err != nil {
			return err
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
