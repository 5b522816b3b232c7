// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// project is a project that exists.
type project struct {
	folder string
	// base are the files as they were written last, and ours those of them that the author has.
	base, ours map[string][]byte
}

// openProject reads a project for an update.
func openProject(folder string) (*project, error) {
	packed, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(baseFile)))
	if err != nil {
		return nil, fmt.Errorf("it is not known what the author has changed: %w", err)
	}
	p := &project{folder: folder}
	if p.base, err = unpackFiles(packed); err != nil {
		return nil, fmt.Errorf("read %s: %w", baseFile, err)
	}
	if p.ours, err = readThose(folder, p.base); err != nil {
		return nil, err
	}
	return p, p.checkMarks()
}

// markStart and markEnd begin the lines around what could not be merged.
const (
	markStart = "<<<<<<< yours"
	markEnd   = ">>>>>>> update"
)

// checkMarks returns an error if conflicts of an earlier update are not resolved.
func (p *project) checkMarks() error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.ours)) {
		text := "\n" + string(p.ours[name])
		if strings.Contains(text, "\n"+markStart) && strings.Contains(text, "\n"+markEnd) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the conflicts of the last update are not resolved: choose what stays between the marks <<<<<<< and >>>>>>> in %s", strings.Join(names, ", "))
}

// keep puts a file as it was written last among those of a new project, if there is one.
func (p *project) keep(files map[string][]byte, name string) {
	if p == nil {
		return
	}
	if text, ok := p.base[name]; ok {
		files[name] = text
	}
}

// hasChanged reports whether the author has changed a file, or removed it.
func (p *project) hasChanged(name string) bool {
	return p != nil && !bytes.Equal(p.base[name], p.ours[name])
}

// parameters returns the parameters of the sample that the author has; nil without a project or a sample that can be read.
func (p *project) parameters(o Options) map[string]any {
	if p == nil || o.Form != FormChart {
		return nil
	}
	_, parameters, _ := o.sampleIn(p.ours[o.sampleFile()])
	return parameters
}

// Update takes over a newer source, or a newer version of the library, into a project. Without a path, the
// source is the one that was taken over last. What the author has changed is kept, and merged where the new
// files differ, too. What cannot be merged is named in the report, and has the marks of git in it.
// Files are replaced one by one: after an error in that, the same update is to be repeated.
func Update(ctx context.Context, folder string, source Source, corbel Corbel, tools Toolchain) (Report, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return Report{}, err
	}
	o, err := readRecord(folder)
	if err != nil {
		return Report{}, err
	}
	if len(o.Kinds) > 0 {
		return Report{}, errors.New("a project with several kinds is not updated: replace the folder chart of a kind, and run make golden; for a newer version of Corbel, raise the one in go.mod")
	}
	if source.Path != "" {
		if source.Form != o.Form {
			return Report{}, fmt.Errorf("the project was made from a source of the form %s, not %s", o.Form, source.Form)
		}
		if inside, err := isInside(source.Path, folder); inside || err != nil {
			return Report{}, errors.Join(err, fmt.Errorf("the source %s is a part of the project: name the newer one, outside of it", source.Path))
		}
		o.setSource(source)
	}
	if err := o.validate(); err != nil {
		return Report{}, fmt.Errorf("%s: %w", recordFile, err)
	}
	previous, err := openProject(folder)
	if err != nil {
		return Report{}, err
	}
	work, err := os.MkdirTemp("", o.Name+"-")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(work)
	last, stage := filepath.Join(work, "last"), filepath.Join(work, "next")
	report, err := previous.next(ctx, &o, source, corbel, last, stage, tools)
	if err != nil {
		return Report{}, err
	}
	next, err := readProject(stage)
	if err != nil {
		return Report{}, err
	}
	if previous.ours, err = readThose(folder, previous.base, next); err != nil {
		return Report{}, err
	}
	if err := previous.take(ctx, o, next, &report); err != nil || len(report.Conflicts) > 0 {
		return report, err
	}
	if err := tools.complete(ctx, folder, []string{"api"}); err != nil {
		return report, err
	}
	changed, err := WriteFieldTable(folder)
	if err != nil { // the author may have made something else of the types
		report.Notes = append(report.Notes, "the table of fields in "+readmeFile+" stays as it is: "+err.Error())
	}
	if changed && !slices.Contains(report.Files, readmeFile) {
		report.Files = append(report.Files, readmeFile)
	}
	return report, nil
}

// next makes the project anew in the folder stage, of the newer source or of the one that was taken over last.
func (p *project) next(ctx context.Context, o *Options, source Source, corbel Corbel, last, stage string, tools Toolchain) (Report, error) {
	var samples []sample
	err := errors.Join(os.MkdirAll(stage, 0o755), writeSource(*o, p.base, last))
	switch {
	case err != nil:
	case source.Path != "":
		samples, err = source.copyTo(stage, o)
	default:
		if err = writeSource(*o, p.base, stage); err == nil && o.Form == FormChart {
			samples, err = samplesOf(filepath.Join(stage, folders[FormChart]))
		}
	}
	if err != nil {
		return Report{}, err
	}
	notes, err := o.fetchSubcharts(ctx, source, stage, p.base, tools.Progress)
	if err != nil {
		return Report{}, err
	}
	if o.Form == FormChart {
		typed, err := p.keepTyped(o, os.DirFS(last), os.DirFS(stage))
		if err != nil {
			return Report{}, err
		}
		notes = append(notes, typed...)
	}
	report, err := build(ctx, o, corbel, stage, []*part{{o: o, source: source, samples: samples}}, p, tools)
	report.Notes = append(report.Notes, notes...)
	return report, err
}

// take changes the files of the project to those that were made anew, and records them.
func (p *project) take(ctx context.Context, o Options, next map[string][]byte, report *Report) error {
	sameTable(next[readmeFile], p.base, p.ours)
	renderGolden := p.takeGolden(ctx, o, next)
	merged, conflicts, err := merge(ctx, p.base, p.ours, next)
	if err != nil {
		return err
	}
	report.Files, report.Conflicts = nil, conflicts
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		report.Files = append(report.Files, name)
		if err := change(p.folder, name, merged[name]); err != nil {
			return fmt.Errorf("repeat the update: %w", err)
		}
	}
	if err := renderGolden(report); err != nil {
		return fmt.Errorf("repeat the update: %w", err)
	}
	return writeRecord(o, p.folder, next)
}

// isInside reports whether a path leads into a folder.
func isInside(path, folder string) (bool, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	relative, err := filepath.Rel(folder, absolute)
	return err == nil && filepath.IsLocal(relative), nil
}

// writeSource writes the source as it was taken over last.
func writeSource(o Options, base map[string][]byte, stage string) error {
	for name, content := range base {
		if o.isSource(name) {
			if err := writeFile(filepath.Join(stage, filepath.FromSlash(name)), content); err != nil {
				return err
			}
		}
	}
	return nil
}

// readThose reads the files of a project that are in one of the sets.
func readThose(folder string, sets ...map[string][]byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, set := range sets {
		for name := range set {
			content, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			files[name] = content
		}
	}
	return files, nil
}

// change writes a file of a project. Without content, it removes the file, and the folders that are empty then.
func change(folder, name string, content []byte) error {
	file := filepath.Join(folder, filepath.FromSlash(name))
	if content != nil {
		return replaceFile(file, content)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for at := filepath.Dir(file); at != folder && os.Remove(at) == nil; at = filepath.Dir(at) {
	}
	return nil
}

// merge returns the files of ours that change, with their content; nil removes a file. The base are
// the files that ours and next come from.
func merge(ctx context.Context, base, ours, next map[string][]byte) (changed map[string][]byte, conflicts []string, err error) {
	changed = map[string][]byte{}
	names := map[string]bool{}
	for _, files := range []map[string][]byte{base, next} {
		for name := range files {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, hadBase := base[name]
		is, exists := ours[name]
		will, wanted := next[name]
		switch {
		case exists == wanted && bytes.Equal(is, will):
		case exists == hadBase && bytes.Equal(is, was): // the author has not changed it
			changed[name] = will
		case wanted == hadBase && bytes.Equal(will, was): // only the author has changed it
		case !exists: // the author has removed it
		case !wanted || bytes.IndexByte(is, 0) >= 0 || bytes.IndexByte(will, 0) >= 0:
			conflicts = append(conflicts, name+" (it stays as it is)")
		default:
			text, clean, err := mergeText(ctx, was, is, will)
			if err != nil {
				return nil, nil, fmt.Errorf("merge %s: %w", name, err)
			}
			if changed[name] = text; !clean {
				conflicts = append(conflicts, name)
			}
		}
	}
	return changed, conflicts, nil
}

// mergeText merges three texts as git does, and reports whether there was no conflict.
func mergeText(ctx context.Context, base, ours, next []byte) (merged []byte, clean bool, err error) {
	folder, err := os.MkdirTemp("", "corbel-merge-")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(folder)
	for name, content := range map[string][]byte{"base": base, "ours": ours, "next": next} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return nil, false, err
		}
	}
	command := exec.CommandContext(ctx, "git", "merge-file", "-p", "-L", "yours", "-L", "before", "-L", "update", "ours", "base", "next")
	command.Dir = folder
	merged, err = command.Output()
	if merged == nil {
		merged = []byte{} // nil stands for a file that is removed
	}
	exit := &exec.ExitError{}
	switch {
	case err == nil:
		return merged, true, nil
	case errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128: // the number of conflicts
		return merged, false, nil
	case errors.Is(err, exec.ErrNotFound):
		return nil, false, errors.New("there is no git command, which merges files that were changed on both sides")
	}
	return nil, false, err
}
