// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"encoding/base64"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Problem is one mistake in a kubeconfig.
type Problem struct {
	// Reason is the kind of mistake, one of the reasons of api/v1alpha1.
	Reason string
	// Path is the field, such as "users[0].user.exec"; empty if it is the whole.
	Path string
	// Text describes the mistake. It holds no values that could be secret.
	Text string
}

// Error lists the problems of a kubeconfig.
type Error struct {
	Problems []Problem
}

// maxSentences bounds the message; a mistake can repeat itself a million times.
const maxSentences = 20

// Error has one sentence for each problem.
func (e *Error) Error() string {
	var sentences []string
	for i, p := range e.Problems {
		if i == maxSentences {
			sentences = append(sentences, fmt.Sprintf("and %d more", len(e.Problems)-i))
			break
		}
		if p.Path != "" {
			p.Text = p.Path + ": " + p.Text
		}
		sentences = append(sentences, p.Text)
	}
	return "kubeconfig: " + strings.Join(sentences, "; ")
}

// severity orders reasons: refusals for safety come before mere mistakes.
var severity = []string{
	vocabulary.ReasonKubeconfigForbiddenField,
	vocabulary.ReasonKubeconfigInsecure,
}

// Reason is the gravest reason among the problems.
func (e *Error) Reason() string {
	for _, reason := range severity {
		if slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Reason == reason }) {
			return reason
		}
	}
	return e.Problems[0].Reason
}

// MaxBytes is the size that a kubeconfig may have.
//
// Limit: a kubeconfig; a larger one stalls the component with the reason KubeconfigTooLarge.
const MaxBytes = 1 << 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// decode reads a kubeconfig strictly: its fields are the fields of the type, in their case, and
// each is there once. The result is nil if it cannot be read.
//
// The errors of parsers quote their input, so none of their words are reported.
func (v *validation) decode(raw []byte) *clientcmdv1.Config {
	if len(raw) > MaxBytes {
		v.report(vocabulary.ReasonKubeconfigTooLarge, "", "has %d bytes, at most %d are allowed", len(raw), MaxBytes)
		return nil
	}
	// White space at the end may hold tabs, which YAML does not allow there.
	raw = bytes.TrimRight(bytes.TrimPrefix(raw, byteOrderMark), " \t\r\n")
	if !utf8.Valid(raw) || bytes.IndexFunc(raw, isForbiddenRune) >= 0 {
		v.invalid("", "is no text in UTF-8")
		return nil
	}
	if v.syntax(raw); len(v.problems) > 0 {
		return nil
	}
	asJSON, err := sigsyaml.YAMLToJSONStrict(raw)
	if err != nil {
		v.invalid("", "cannot be converted to JSON: it has keys or values that JSON does not have")
		return nil
	}
	config := &clientcmdv1.Config{}
	unknown, err := json.UnmarshalStrict(asJSON, config)
	if err != nil {
		v.invalid(typeProblem(err))
		return nil
	}
	for _, err := range unknown {
		path := "a field"
		if field, ok := errors.AsType[json.FieldError](err); ok {
			path = shownPath(field.FieldPath())
		}
		v.invalid(path, "is no field of a kubeconfig")
	}
	return config
}

// syntax checks that the text is one YAML document without anchors, aliases, tags or duplicate keys.
func (v *validation) syntax(raw []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var document, next yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		v.report(vocabulary.ReasonKubeconfigEmpty, "", "is empty")
		return
	case err != nil:
		text := "is neither YAML nor JSON"
		if match := linePattern.FindStringSubmatch(err.Error()); match != nil {
			text += ": there is a mistake near line " + match[1]
		}
		v.invalid("", "%s", text)
		return
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		v.invalid("", "holds more than one document")
		return
	}
	v.plain(&document)
}

var linePattern = regexp.MustCompile(`line (\d+):`)

// isForbiddenRune finds runes of UTF-16 without a byte order mark, and runes that terminals and
// logs interpret.
func isForbiddenRune(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' && r != '\u0085' || r == '\ufeff'
}

// plain refuses anchors and aliases, by which a short text becomes a long one, tags, by
// which it becomes something else, and duplicate keys.
func (v *validation) plain(node *yaml.Node) {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		v.invalid("", "line %d: anchors and aliases are not allowed", node.Line)
		return
	case node.Style&yaml.TaggedStyle != 0:
		v.invalid("", "line %d: tags are not allowed", node.Line)
		return
	}
	keys := map[string]bool{}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if keys[child.Value] {
				v.invalid("", "line %d: %s is defined more than once (duplicate)", child.Line, shownName(child.Value))
			}
			keys[child.Value] = true
		}
		v.plain(child)
	}
}

var (
	ordinaryName = regexp.MustCompile(`^[A-Za-z][A-Za-z-]{0,39}$`)
	parentPath   = regexp.MustCompile(`^(?:(?:clusters|users|contexts)\[\d+\]\.(?:(?:cluster|user|context)\.)?)?`)
)

// shownName returns the name of a field. A key that is no ordinary name may be a
// value at the wrong place, and so a secret.
func shownName(name string) string {
	if !ordinaryName.MatchString(name) {
		return "(a name that is not shown)"
	}
	return name
}

// shownPath returns the path of a field that does not exist.
func shownPath(path string) string {
	parent := parentPath.FindString(path)
	return parent + shownName(path[len(parent):])
}

// typeProblem names the field that has a value of another type.
func typeProblem(err error) (path, text string) {
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return "", "certificate-authority-data, client-certificate-data and client-key-data must be data in base64"
	}
	mismatch, ok := errors.AsType[*stdjson.UnmarshalTypeError](err)
	if !ok {
		return "", "does not have the form of a kubeconfig"
	}
	switch mismatch.Type.Kind() {
	case reflect.Bool:
		return mismatch.Field, "must be true or false"
	case reflect.String:
		return mismatch.Field, "must be a string; if it looks like a number or a date, put it in quotes"
	case reflect.Slice:
		if mismatch.Type.Elem().Kind() == reflect.Uint8 {
			return mismatch.Field, "must be data in base64"
		}
		return mismatch.Field, "must be a list"
	}
	return mismatch.Field, "must be a mapping of fields"
}
