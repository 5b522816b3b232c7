// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/corbel-run/corbel/pkg/status"
)

// documentedNames are the names of reconcilers in the documents.
var documentedNames = []string{"shop.example.com", "greeting.example.com"}

// yamlBlock is a block of YAML in a document.
var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// comments are the lines of a block without content.
var comments = regexp.MustCompile(`(?m)^#.*$`)

// TestTheAnnotationsInTheDocumentsAreValid parses the annotations of all manifests in the how-tos,
// as they are parsed when a component renders them.
func TestTheAnnotationsInTheDocumentsAreValid(t *testing.T) {
	files, err := filepath.Glob("../../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(content), -1) {
			if strings.HasPrefix(strings.TrimSpace(comments.ReplaceAllString(block[1], "")), "- ") {
				continue // a list, such as rules to add to a role
			}
			decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(block[1]), 1<<16)
			for {
				object := &unstructured.Unstructured{}
				err := decoder.Decode(&object.Object)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Errorf("%s: %v", file, err)
					break
				}
				if strings.HasPrefix(object.GetAPIVersion(), "shop.example.com/") && object.GetKind() == "Shop" {
					continue // the annotations of components are others
				}
				for _, name := range documentedNames {
					set, err := Parse(name, object.GetAnnotations(), Set{})
					if err == nil && set.ReadyWhen != "" {
						_, err = status.CompileReadyWhen(set.ReadyWhen)
					}
					if err != nil {
						t.Errorf("%s: %s %s: %v", filepath.Base(file), object.GetKind(), object.GetName(), err)
					}
				}
				total += len(object.GetAnnotations())
			}
		}
	}
	if total < 10 {
		t.Errorf("there are %d annotations only: something is not seen", total)
	}
}
