// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// proofs says for each language of a block what proves its content.
// docs/contributing/documents.md has the same for contributors.
var proofs = map[string]string{
	"go":         "test/architecture: it is in the file that its label names, which is compiled",
	"yaml":       "TestEveryYAMLBlockParses and TestTheServerAcceptsEveryManifest",
	"gotemplate": "TestTheServerAcceptsEveryManifest, after rendering",
	"sh":         "TestEveryCommandRuns",
	"lua":        "the test of its file in test/ops; another one compares the page with the file",
	"console":    "TestEveryCommandRuns; of the tutorial TestTheTutorial",
	"text":       "nothing: it is a message, or what its label says",
}

// labels are the comments above a block, by its language.
var labels = map[string]*regexp.Regexp{
	"go":   regexp.MustCompile(`^(code of \S+|output)$`),
	"text": regexp.MustCompile(`^(files|output of .+)$`),
}

// wrongBlock says why nothing proves a block; it is empty if something does.
func wrongBlock(b block) string {
	_, known := proofs[b.language]
	allowed := labels[b.language]
	switch {
	case b.language == "":
		return "the block has no language"
	case !known:
		return fmt.Sprintf("nothing proves a block of the language %s", b.language)
	case b.label != "" && (allowed == nil || !allowed.MatchString(b.label)):
		return fmt.Sprintf("a block of the language %s cannot have the label %q", b.language, b.label)
	case b.language == "go" && b.label == "":
		return "the block of Go has no label that names its file"
	}
	return ""
}

// indented returns the first lines of blocks that are indented and have no fences.
func (p page) indented() []int {
	var found []int
	_, prose := p.split()
	for i, line := range prose {
		if strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "" && (i == 0 || strings.TrimSpace(prose[i-1]) == "") {
			found = append(found, i+1)
		}
	}
	return found
}

// TestEveryBlockIsProven finds blocks of code of which no test says that they are true.
func TestEveryBlockIsProven(t *testing.T) {
	const advice = "docs/contributing/documents.md lists the languages and labels of blocks"
	total := 0
	for _, p := range pages(t) {
		blocks, _ := p.split()
		for _, b := range blocks {
			total++
			if problem := wrongBlock(b); problem != "" {
				t.Errorf("%s:%d: %s; %s", p.name, b.line, problem, advice)
			}
		}
		for _, line := range p.indented() {
			t.Errorf("%s:%d: the block is indented and has no language: put it between fences; %s", p.name, line, advice)
		}
	}
	if total < 80 {
		t.Errorf("there are %d blocks only: something is not seen", total)
	}
}
