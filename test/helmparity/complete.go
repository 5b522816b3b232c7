// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// maxLevels limits how deep sub-charts are looked for.
const maxLevels = 10

// charts are the folders of the charts of each name.
type charts map[string][]string

// nearest returns the chart of a name that has the most in common with the folder of
// the chart that wants it: different people publish charts of the same name.
func (c charts) nearest(folder, name string) string {
	best, most := "", -1
	for _, candidate := range c[name] {
		n := 0
		for n < min(len(candidate), len(folder)) && candidate[n] == folder[n] {
			n++
		}
		if n > most {
			best, most = candidate, n
		}
	}
	return best
}

// metadataOf reads the Chart.yaml and the requirements.yaml of a folder.
func metadataOf(folder string) (chart.Metadata, error) {
	var metadata chart.Metadata
	data, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return metadata, err
	}
	if err := yaml.Unmarshal(data, &metadata); err != nil {
		return metadata, err
	}
	var older chart.Metadata
	data, err = os.ReadFile(filepath.Join(folder, "requirements.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &older)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	metadata.Dependencies = append(metadata.Dependencies, older.Dependencies...)
	return metadata, err
}

// missing returns the sub-charts that a chart wants and does not bring, with the
// folders that they can be had from: those that it names, and then its siblings.
func missing(folder string, all charts) (map[string]string, error) {
	metadata, err := metadataOf(folder)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, dependency := range metadata.Dependencies {
		packed, err := filepath.Glob(filepath.Join(folder, "charts", dependency.Name+"-*.tgz"))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(folder, "charts", dependency.Name)); err == nil || len(packed) > 0 {
			continue
		}
		from := all.nearest(folder, dependency.Name)
		if local, ok := strings.CutPrefix(dependency.Repository, "file://"); ok {
			from = filepath.Join(folder, local)
		}
		if _, err := os.Stat(filepath.Join(from, "Chart.yaml")); from != "" && err == nil {
			found[dependency.Name] = from
		}
	}
	return found, nil
}

// vendor copies a chart, with the sub-charts that it does not bring itself.
func vendor(from, to string, all charts, levels int) error {
	if levels == 0 {
		return errors.New("the sub-charts want each other without end")
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	dependencies, err := missing(from, all)
	if err != nil {
		return err
	}
	for name, folder := range dependencies {
		if err := vendor(folder, filepath.Join(to, "charts", name), all, levels-1); err != nil {
			return err
		}
	}
	return acceptAny(filepath.Join(to, "Chart.yaml"), dependencies)
}

// acceptAny lets a chart accept the sub-charts in whatever version they are: those of a
// collection may be newer than what the chart names, and would be left out.
func acceptAny(file string, names map[string]string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	content := map[string]any{}
	if err := yaml.Unmarshal(data, &content); err != nil {
		return err
	}
	dependencies, _ := content["dependencies"].([]any)
	for _, item := range dependencies {
		if dependency, ok := item.(map[string]any); ok && names[fmt.Sprint(dependency["name"])] != "" {
			dependency["version"] = ">=0.0.0-0"
		}
	}
	if data, err = yaml.Marshal(content); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
