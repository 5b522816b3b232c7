// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// AssetsVariable names the environment variable that says where the programs are,
// the same that controller-runtime's envtest reads.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// modulePath distinguishes the root of this repository from modules inside it.
const modulePath = "github.com/corbel-run/corbel"

func programsFor(cluster bool) []string {
	programs := []string{"etcd", "kube-apiserver", "kubectl"}
	if cluster {
		programs = append(programs, "kube-controller-manager", "kube-scheduler", "podsim")
	}
	return programs
}

// Assets returns the folder that holds the programs: the one named by
// [AssetsVariable] if it has them all, else bin/k8s of this repository. Programs
// are never used from two folders, because their versions have to agree. The
// default of programs is what an environment without [Options.Cluster] needs.
func Assets(programs ...string) (string, error) {
	if len(programs) == 0 {
		programs = programsFor(false)
	}
	var unusable error
	if folder := os.Getenv(AssetsVariable); folder != "" {
		if unusable = checkAssets(folder, programs); unusable == nil {
			return filepath.Abs(folder)
		}
		unusable = fmt.Errorf("%s does not suffice: %w", AssetsVariable, unusable)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", errors.Join(err, unusable)
	}
	folder := filepath.Join(root, "bin", "k8s")
	if err := checkAssets(folder, programs); err != nil {
		return "", errors.Join(err, unusable)
	}
	return folder, nil
}

// checkAssets reports all programs that are missing, in one sentence that says
// what to do.
func checkAssets(folder string, programs []string) error {
	var missing []string
	for _, program := range programs {
		info, err := os.Stat(filepath.Join(folder, program))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no program %s in %s: run `make controlplane`", strings.Join(missing, ", "), folder)
	}
	return nil
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?` + regexp.QuoteMeta(modulePath) + `"?\s*(//.*)?$`)

// moduleRoot walks up from the working folder, which `go test` sets to the folder
// of the package. It skips the roots of nested modules.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && moduleLine.Match(content) {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("%s is not inside a checkout of %s: set %s to a folder with the control plane's programs",
				start, modulePath, AssetsVariable)
		}
	}
}
