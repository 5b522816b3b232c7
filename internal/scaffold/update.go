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

// Update takes over a newer source, or a newer version of the library, into a project. An empty origin
// is the one that is recorded. What the author has changed is kept, and merged where the new
// files differ, too. What cannot be merged is named in the report, and has the marks of git in it.
// After an error nothing is changed.
func Update(ctx context.Context, folder, origin string, corbel Corbel, tools Toolchain) (Report, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return Report{}, err
	}
	o, err := readRecord(folder)
	if err != nil {
		return Report{}, err
	}
	if origin != "" {
		o.Origin = origin
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
	stage, err := os.MkdirTemp(filepath.Dir(folder), "."+o.Name+"-")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(stage)
	report, err := build(ctx, o, corbel, stage, tools)
	if err != nil {
		return Report{}, err
	}
	next, err := readProject(stage)
	if err != nil {
		return Report{}, err
	}
	ours, err := readProject(folder)
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
			return report, err
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
