// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
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
	o.setSource(source)
	if err := errors.Join(o.validate(), checkTarget(target)); err != nil {
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
	samples, err := source.copyTo(stage, &o)
	if err != nil {
		return Report{}, err
	}
	notes, err := o.fetchSubcharts(ctx, source, stage, nil, tools.Progress)
	if err != nil {
		return Report{}, err
	}
	report, err := build(ctx, &o, corbel, stage, samples, nil, tools)
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

// build makes the whole project in a folder that has its source. Previous is the project that is updated, or nil.
func build(ctx context.Context, o *Options, corbel Corbel, stage string, samples []sample, previous *project, tools Toolchain) (Report, error) {
	learned, err := learn(ctx, o, stage, samples, previous.parameters(*o), previous == nil)
	if err != nil {
		return Report{}, err
	}
	c := contents{
		Options: *o, Corbel: corbel, ControllerGen: ControllerGen, KubeVersion: kubeVersion, Folder: folders[o.Form],
		Values:     learned.code,
		HasPatches: o.Patches || !learned.escalates, Escalates: learned.escalates, CreatesNamespaces: learned.createsNamespaces, Fixed: learned.fixed,
	}
	files, err := c.files()
	if err != nil {
		return Report{}, err
	}
	files["deploy/templates/rbac.yaml"] = []byte(learned.rights)
	if files[o.sampleFile()], err = sampleOf(*o, learned); err != nil {
		return Report{}, err
	}
	ofAuthor := learned.keepSample || learned.unrendered != "" // the golden file is that of the sample of the author
	if ofAuthor {
		previous.keep(files, goldenFile)
		previous.keep(files, prerequisitesFile)
	}
	if learned.keepSample || previous.hasChanged(o.sampleFile()) { // new defaults in its comments are worth no conflict
		previous.keep(files, o.sampleFile())
	}
	table, err := fieldTable(files, *o)
	if err != nil {
		return Report{}, err
	}
	files[readmeFile] = withTable(files[readmeFile], table)
	for name, content := range files {
		if err := writeFile(filepath.Join(stage, filepath.FromSlash(name)), content); err != nil {
			return Report{}, err
		}
	}
	notes := learned.notes
	if !ofAuthor {
		golden, err := o.golden(ctx, stage)
		if err != nil && previous.hasChanged(o.sampleFile()) { // the chart needs more than the sample that the author has replaced
			golden, err = previous.base[goldenFile], nil
		}
		if err == nil && golden != nil { // that of a generator in Go is a template
			more, writeErr := writeGolden(stage, golden)
			notes, err = append(notes, more...), writeErr
		}
		if err != nil {
			return Report{}, fmt.Errorf("write %s: %w", goldenFile, err)
		}
	}
	if err := tools.complete(ctx, stage); err != nil {
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
	return folder != "" && strings.HasPrefix(name, folder+"/")
}
