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
)

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
	packed, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(baseFile)))
	if err != nil {
		return Report{}, fmt.Errorf("it is not known what the author has changed: %w", err)
	}
	base, err := unpackFiles(packed)
	if err != nil {
		return Report{}, fmt.Errorf("read %s: %w", baseFile, err)
	}
	stage, err := os.MkdirTemp("", o.Name+"-")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(stage)
	if source.Path != "" {
		err = source.copyTo(stage)
	} else {
		err = writeSource(o, base, stage)
	}
	if err != nil {
		return Report{}, err
	}
	report, err := build(ctx, o, corbel, stage, tools)
	if err != nil {
		return Report{}, err
	}
	next, err := readProject(stage)
	if err != nil {
		return Report{}, err
	}
	ours, err := readThose(folder, base, next)
	if err != nil {
		return Report{}, err
	}
	merged, conflicts, err := merge(ctx, base, ours, next)
	if err != nil {
		return Report{}, err
	}
	report.Files, report.Conflicts = nil, conflicts
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		report.Files = append(report.Files, name)
		if err := change(filepath.Join(folder, filepath.FromSlash(name)), merged[name]); err != nil {
			return report, fmt.Errorf("repeat the update: %w", err)
		}
	}
	if err := writeRecord(o, folder, next); err != nil {
		return report, err
	}
	if len(conflicts) > 0 {
		return report, nil
	}
	tools.SkipGolden = true // the author looks at what changes in them
	return report, tools.complete(ctx, folder)
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

// change writes a file, or removes it if there is no content.
func change(name string, content []byte) error {
	if content != nil {
		return replaceFile(name, content)
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
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
