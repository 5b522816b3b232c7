// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// trees is a folder of git repositories, which have the sub-charts in place of chart repositories. A git repository stands for
// the chart repositories with an address that contains its name in the folder.
type trees struct {
	folder string
	charts map[string][]tree // by the folder of the git repository
}

// tree is a version of a chart in a git repository.
type tree struct {
	name, version string
	object        string // the commit that named the version, and the folder of the chart in it
}

// FetchVersion packs the newest version of a chart that fits a range.
func (t *trees) FetchVersion(ctx context.Context, repository, name, version string) ([]byte, error) {
	folders, err := filepath.Glob(filepath.Join(t.folder, "*"))
	if err != nil {
		return nil, err
	}
	folders = slices.DeleteFunc(folders, func(f string) bool { return !strings.Contains(repository, filepath.Base(f)) })
	slices.SortFunc(folders, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the longest name fits best
	for _, folder := range folders {
		if t.charts[folder] == nil {
			text, err := git(ctx, folder, "log", "--format=commit %H", "-p", "-U99", "--no-renames", "--no-ext-diff", "--", ":(glob)**/Chart.yaml")
			if err != nil {
				return nil, err
			}
			t.charts[folder] = treesOf(string(text))
		}
		var newest tree
		for _, c := range t.charts[folder] {
			isNewer := newest.version == "" || chartutil.IsCompatibleRange(">"+newest.version, c.version)
			if isNewer && c.name == name && chartutil.IsCompatibleRange(version, c.version) {
				newest = c
			}
		}
		if newest.version != "" {
			return git(ctx, folder, "archive", "--format=tgz", "--prefix="+name+"/", newest.object)
		}
	}
	return nil, fmt.Errorf("no git repository for %s has %s %s", repository, name, version)
}

func git(ctx context.Context, folder string, args ...string) ([]byte, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...).Output()
	if err != nil {
		err = fmt.Errorf("git repository %s: git %s: %w", folder, args[0], err)
	}
	return output, err
}

var (
	chartName    = regexp.MustCompile(`(?m)^[+ ]name:\s*["']?([^\s"']+)`)
	chartVersion = regexp.MustCompile(`(?m)^\+version:\s*["']?([^\s"']+)`)
)

// treesOf reads from the changes of all files Chart.yaml which commits named which versions of charts.
func treesOf(log string) (found []tree) {
	for change := range strings.SplitSeq("\n"+log, "\ncommit ") {
		commit, change, _ := strings.Cut(change, "\n")
		for file := range strings.SplitSeq(change, "\n+++ b/") {
			file, text, _ := strings.Cut(file, "\n")
			name, version := chartName.FindStringSubmatch(text), chartVersion.FindStringSubmatch(text)
			if name == nil || version == nil {
				continue
			}
			found = append(found, tree{name: name[1], version: version[1], object: commit + ":" + strings.TrimPrefix(path.Dir(file), ".")})
		}
	}
	return found
}
