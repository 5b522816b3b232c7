// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/rbacrules"
)

// Report says what an author should know about a project.
type Report struct {
	// Files are those that were written, without the source.
	Files []string
	// Notes are sentences about what the project does not do as expected.
	Notes []string
	// Conflicts are files that an update could not merge.
	Conflicts []string
}

// Create makes a new project of a source, in a folder that does not exist, or is empty. After
// an error there is none. Corbel is what the project requires; the toolchain completes it.
func Create(ctx context.Context, o Options, source Source, corbel Corbel, target string, tools Toolchain) (Report, error) {
	target, err := filepath.Abs(target)
	if err != nil {
		return Report{}, err
	}
	o.Name = filepath.Base(target)
	parts, err := partsOf(&o, source)
	if err := errors.Join(err, checkTarget(target)); err != nil {
		return Report{}, err
	}
	unmake, err := makeFolders(filepath.Dir(target))
	if err != nil {
		return Report{}, fmt.Errorf("the folder of the project cannot be made: %w", err)
	}
	defer unmake() // folders that are in use stay
	stage, err := os.MkdirTemp(filepath.Dir(target), "."+o.Name+"-")
	if err != nil {
		return Report{}, fmt.Errorf("the folder of the project cannot be made: %w", err)
	}
	defer os.RemoveAll(stage)
	var notes []string
	for _, p := range parts {
		folder := filepath.Join(stage, p.o.Package)
		if p.samples, err = p.source.copyTo(folder, p.o); err != nil {
			return Report{}, err
		}
		more, err := p.o.fetchSubcharts(ctx, p.source, folder, nil, tools.Progress)
		if err != nil {
			return Report{}, err
		}
		notes = append(notes, more...)
	}
	report, err := build(ctx, &o, corbel, stage, parts, nil, tools)
	report.Notes = append(notes, report.Notes...)
	if err != nil {
		return Report{}, err
	}
	return report, move(stage, target)
}

// makeFolders makes a folder and those that lead to it. Unmake removes those that were made and are empty.
func makeFolders(folder string) (unmake func(), err error) {
	var made []string
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	unmake = func() {
		for _, folder := range made { // the innermost first
			if os.Remove(folder) != nil {
				return
			}
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		unmake()
		return nil, err
	}
	return unmake, nil
}

// move moves a folder to its place. A folder that exists there is filled, because a shell may be in it.
func move(stage, target string) error {
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	if err := checkTarget(target); err != nil { // it may have been filled meanwhile
		return err
	}
	if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(stage, target)
	}
	entries, err := os.ReadDir(stage)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Rename(filepath.Join(stage, entry.Name()), filepath.Join(target, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget returns an error if a folder is in use.
func checkTarget(target string) error {
	entries, err := os.ReadDir(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the folder of the project cannot be used: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("%s exists and is not empty: name another folder, or use --update inside it", target)
	}
	return nil
}

// part is a kind of a project that is made, with its source.
type part struct {
	o       *Options
	source  Source
	samples []sample
	learned learned
}

// partsOf returns the kinds of a new project. The error has all mistakes.
func partsOf(o *Options, source Source) ([]*part, error) {
	if source.Form != FormOperator {
		o.setSource(source)
		return []*part{{o: o, source: source}}, o.validate()
	}
	parts, left, err := readHelmOperator(source.Path, *o)
	mistakes := []error{err}
	seen := map[string]bool{}
	for _, p := range parts {
		p.source.Repositories = source.Repositories
		if o.Module == "" {
			o.Module = p.o.Group + "/" + o.Name
		}
		p.o.Module = o.Module
		joined, _ := p.o.validate().(interface{ Unwrap() []error })
		if joined == nil {
			continue
		}
		for _, mistake := range joined.Unwrap() { // the name of the project is wrong for each kind
			if text := strings.ReplaceAll(mistake.Error(), "--", ""); !seen[text] { // the values are those of files, not of flags
				seen[text] = true
				mistakes = append(mistakes, errors.New(text))
			}
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	o.Form, o.Origin = FormOperator, filepath.Base(source.Path)
	if len(parts) == 1 {
		*o = *parts[0].o
		parts[0].o = o
	}
	o.Left = left
	return parts, nil
}

// build makes the whole project in a folder that has its source. Previous is the project that is updated, or nil.
func build(ctx context.Context, o *Options, corbel Corbel, stage string, parts []*part, previous *project, tools Toolchain) (Report, error) {
	root := contents{Options: *o, Corbel: corbel, ControllerGen: ControllerGen, KubeVersion: kubeVersion}
	var notes []string
	for _, p := range parts {
		var err error
		if p.learned, err = learn(ctx, p.o, filepath.Join(stage, p.o.Package), p.samples, previous.parameters(*p.o), previous == nil); err != nil {
			return Report{}, err
		}
		notes = append(notes, p.learned.notes...)
		c := root
		c.Options, c.Folder, c.Values = *p.o, folders[p.o.Form], p.learned.code
		c.HasPatches, c.Escalates = p.o.Former == nil && (p.o.Patches || !p.learned.escalates), p.learned.escalates
		c.CreatesNamespaces, c.Fixed = p.learned.createsNamespaces, p.learned.fixed
		c.Outputs = p.learned.outputs
		if len(parts) == 1 {
			root = c
			break
		}
		root.Several, o.Kinds = append(root.Several, c), append(o.Kinds, *p.o)
	}
	files, err := root.files()
	if err != nil {
		return Report{}, err
	}
	if files["deploy/templates/rbac.yaml"], err = rightsOf(parts); err != nil {
		return Report{}, err
	}
	for _, p := range parts {
		more, err := p.finish(ctx, files, stage, previous)
		if err != nil {
			return Report{}, err
		}
		notes = append(notes, more...)
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(stage, filepath.FromSlash(name)), content); err != nil {
			return Report{}, err
		}
	}
	if err := tools.complete(ctx, stage, root.APIFolders()); err != nil {
		return Report{}, err
	}
	if err := CheckDefinitions(stage); err != nil {
		return Report{}, err
	}
	if corbel.Folder != "" {
		notes = append(notes, "go.mod replaces github.com/corbel-run/corbel by the checkout "+corbel.Folder+", because this program is no release")
	}
	record, err := recordOf(*o, stage)
	if err != nil {
		return Report{}, err
	}
	return Report{Files: record, Notes: notes}, nil
}

// finish adds the sample of a kind and the table of its fields to the files of the project, and writes its golden file.
func (p *part) finish(ctx context.Context, files map[string][]byte, stage string, previous *project) (notes []string, err error) {
	o, learned := *p.o, p.learned
	sampleFile := path.Join(o.Package, o.sampleFile())
	if files[sampleFile], err = sampleOf(o, learned); err != nil {
		return nil, err
	}
	ofAuthor := learned.keepSample || learned.unrendered != "" // the golden file is that of the sample of the author
	if ofAuthor {
		previous.keep(files, goldenFile)
		previous.keep(files, prerequisitesFile)
	}
	if learned.keepSample || o.Former != nil || previous.hasChanged(o.sampleFile()) { // new defaults in its comments are worth no conflict
		previous.keep(files, sampleFile)
	}
	if o.Former == nil {
		table, err := fieldTable(files, o)
		if err != nil {
			return nil, err
		}
		files[readmeFile] = withTable(files[readmeFile], table)
	}
	folder := filepath.Join(stage, o.Package)
	if err := writeFile(filepath.Join(folder, filepath.FromSlash(o.sampleFile())), files[sampleFile]); err != nil || ofAuthor {
		return nil, err
	}
	golden, err := o.golden(ctx, folder)
	if err != nil && previous.hasChanged(o.sampleFile()) { // the chart needs more than the sample that the author has replaced
		golden, err = previous.base[goldenFile], nil
	}
	if err == nil && golden != nil { // that of a generator in Go is a template
		notes, err = writeGolden(folder, golden)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path.Join(o.Package, goldenFile), err)
	}
	return notes, nil
}

// rightsOf returns the roles of an operator for all kinds of a project.
func rightsOf(parts []*part) ([]byte, error) {
	operator, kinds := parts[0].learned.operator, parts[0].learned.kinds
	for _, p := range parts[1:] {
		operator.More = append(operator.More, schema.GroupResource{Group: p.o.Group, Resource: p.o.Plural()})
		operator.CreatesNamespaces = operator.CreatesNamespaces || p.learned.operator.CreatesNamespaces
		kinds = rbacrules.Merge(kinds, p.learned.kinds)
	}
	text, err := operator.YAML(kinds)
	return []byte(text), err
}

// writeGolden writes the golden file, and the objects that it needs.
func writeGolden(stage string, golden []byte) (notes []string, err error) {
	needed, notes, err := prerequisites(golden)
	if err == nil && needed != nil {
		err = writeFile(filepath.Join(stage, filepath.FromSlash(prerequisitesFile)), needed)
	}
	return notes, errors.Join(err, writeFile(filepath.Join(stage, filepath.FromSlash(goldenFile)), golden))
}

// maxCRD is the limit of etcd for a request, less what an API server adds.
const maxCRD = 1 << 20

// CheckDefinitions returns an error if a CustomResourceDefinition of a project is too large for the API server.
func CheckDefinitions(folder string) error {
	size, err := crdSize(folder)
	if err == nil && size > maxCRD {
		err = fmt.Errorf("the CustomResourceDefinition has %d KiB, and the API server accepts about %d: type fewer values, with --spec curated or --field", size>>10, maxCRD>>10)
	}
	return err
}

// crdSize returns the size of the largest definition, as it is sent.
func crdSize(stage string) (int, error) {
	names, err := filepath.Glob(filepath.Join(stage, "deploy", "files", "*.yaml"))
	if err != nil {
		return 0, err
	}
	largest := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		sent, err := yaml.YAMLToJSON(text)
		if err != nil {
			return 0, err
		}
		largest = max(largest, len(sent))
	}
	return largest, nil
}

// sampleFile is the file of the sample.
func (o Options) sampleFile() string { return "samples/" + o.Variable() + ".yaml" }

// isSource reports whether a file is part of the source of the project.
func (o Options) isSource(name string) bool {
	folder := folders[o.Form]
	return folder != "" && strings.HasPrefix(name, path.Join(o.Package, folder)+"/") || slices.ContainsFunc(o.Kinds, func(kind Options) bool { return kind.isSource(name) })
}
