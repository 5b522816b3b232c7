// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	chartarchive "helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/corbel-run/corbel/internal/document"
)

// Repositories fetches packed charts.
type Repositories interface {
	// FetchVersion fetches the newest version of a chart that fits a range. An error names the address, and
	// says what to do.
	FetchVersion(ctx context.Context, repository, name, version string) ([]byte, error)
}

// Subchart is a sub-chart that was fetched.
type Subchart struct {
	Name       string `json:"name"`
	Repository string `json:"repository"`
	Version    string `json:"version"`
	// Digest is that of the packed sub-chart.
	Digest string `json:"digest"`
}

// file is the name of the packed sub-chart.
func (s Subchart) file() string { return s.Name + "-" + s.Version + ".tgz" }

// String names the sub-chart, without what may be secret.
func (s Subchart) String() string { return s.Version + " of " + public(s.Repository) }

// The sub-charts are bounded, because they may name each other without end.
const (
	maxSubcharts      = 500 // at all levels together
	maxSubchartLevels = 20
	maxSubchartTime   = 15 * time.Minute
)

// fetchSubcharts fetches the sub-charts that a newer source lacks, at all levels, and records them. Those on record are fetched
// again if their versions still fit, or are taken from the files of the project that is updated. The notes say what changes.
func (o *Options) fetchSubcharts(ctx context.Context, source Source, stage string, files map[string][]byte, progress func(string)) ([]string, error) {
	if o.Form != FormChart || source.Path == "" {
		return nil, nil
	}
	work, err := os.MkdirTemp(stage, ".subcharts-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	ctx, cancel := context.WithTimeoutCause(ctx, maxSubchartTime, fmt.Errorf("to fetch the sub-charts takes longer than %s: repeat the command, or put them into the folder charts", maxSubchartTime))
	defer cancel()
	s := &subcharts{repositories: source.Repositories, progress: progress, work: work, recorded: o.Subcharts, files: files}
	at := place{folder: filepath.Join(stage, folders[FormChart])}
	if info, err := os.Stat(source.Path); err == nil && info.IsDir() {
		at.origin = source.Path
	} else {
		at.origin, at.within = at.folder, at.folder
	}
	if _, err := s.complete(ctx, at, nil); err != nil {
		return nil, err
	}
	if files != nil {
		s.notes = append(s.notes, changedSubcharts(o.Subcharts, s.fetched)...)
	}
	o.Subcharts = s.fetched
	return s.notes, nil
}

// subcharts completes a chart.
type subcharts struct {
	repositories Repositories
	progress     func(string)
	work         string            // a folder for what is unpacked
	recorded     []Subchart        // by the project that is updated
	files        map[string][]byte // of that project
	used         budget
	count        int
	fetched      []Subchart
	notes        []string
}

// place is where the files of a chart are.
type place struct {
	// folder is the chart in the project, or a packed one in a temporary folder.
	folder string
	// origin is the folder from which the paths of file:// lead, and within the folder that they must not leave; empty for
	// a folder of the user, which has what the author of a chart has beside it.
	origin, within string
}

// subchart is a sub-chart in the folder charts.
type subchart struct {
	place
	name, version string
	// packed is the file of a packed sub-chart; empty for a folder.
	packed string
}

// complete fetches what a chart lacks, and what its sub-charts lack. It reports whether that is anything. Above are the
// names of the chart and those that it is in.
func (s *subcharts) complete(ctx context.Context, at place, above []string) (changed bool, err error) {
	head, err := readHead(at.folder)
	if err != nil {
		return false, nil // the mistake is reported when the chart is loaded
	}
	above = append(slices.Clip(above), head.Name())
	title := strings.Join(above, "/")
	if len(above) > maxSubchartLevels {
		return false, fmt.Errorf("sub-charts are nested deeper than %d levels: %s", maxSubchartLevels, title)
	}
	present, err := s.open(at)
	if err != nil {
		return false, fmt.Errorf("chart %s: %w", title, err)
	}
	all := head.Metadata.Dependencies
	wanted := slices.DeleteFunc(slices.Clone(all), func(d *chart.Dependency) bool { return isPresent(d, present) })
	for _, below := range present {
		if isNamed, fits := below.isNamed(all); isNamed && !fits {
			s.notes = append(s.notes, fmt.Sprintf("the folder charts of chart %s has %s %s, which does not fit the version in Chart.yaml: as in Helm, condition, tags and alias do not count for it; remove it to fetch a version that fits", title, below.name, below.version))
			wanted = slices.DeleteFunc(wanted, func(d *chart.Dependency) bool { return d.Name == below.name })
		}
	}
	if s.count += len(present) + len(wanted); s.count > maxSubcharts {
		return false, fmt.Errorf("chart %s: there are more than %d sub-charts, at all levels together", title, maxSubcharts)
	}
	var mistakes []error
	if len(wanted) > 0 && head.Lock != nil {
		if wanted, err = locked(head, wanted); err != nil {
			mistakes = append(mistakes, fmt.Errorf("chart %s: %w", title, err))
		}
	}
	for _, d := range wanted {
		if isPresent(d, present) { // by another alias
			continue
		}
		added, err := s.add(ctx, at, d)
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil:
			mistakes = append(mistakes, fmt.Errorf("sub-chart %s of chart %s: %w", strings.TrimSpace(d.Name+" "+d.Version), title, err))
			continue
		}
		present, changed = append(present, added), true
	}
	for _, below := range present {
		completed, err := s.complete(ctx, below.place, above)
		if err == nil && completed && below.packed != "" {
			err = unpackInPlace(below)
		}
		changed, mistakes = changed || completed, append(mistakes, err)
	}
	return changed, errors.Join(mistakes...)
}

// readHead reads the files that name the sub-charts of a chart.
func readHead(folder string) (*chart.Chart, error) {
	var files []*chartarchive.BufferedFile
	for _, name := range []string{"Chart.yaml", "Chart.lock", "requirements.yaml", "requirements.lock"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = document.CheckAliases(data)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, &chartarchive.BufferedFile{Name: name, Data: data})
	}
	return loader.LoadFiles(files)
}

// open returns the sub-charts that are in the folder charts, and unpacks those that are packed.
func (s *subcharts) open(at place) (found []subchart, err error) {
	entries, err := os.ReadDir(filepath.Join(at.folder, "charts"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		name := filepath.Join("charts", entry.Name())
		below := subchart{place: place{folder: filepath.Join(at.folder, name), within: at.within}}
		switch {
		case strings.ContainsAny(entry.Name()[:1], "._"): // Helm does not load it
			continue
		case entry.IsDir():
			below.origin = filepath.Join(at.origin, name)
			if real, err := filepath.EvalSymlinks(below.origin); err == nil && at.within == "" {
				below.origin = real // the folder may be a link to a chart beside this one
			}
		case filepath.Ext(entry.Name()) == ".tgz":
			if below, err = s.unpack(below.folder); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		default:
			continue
		}
		if head, err := readHead(below.folder); err == nil {
			below.name, below.version = head.Name(), head.Metadata.Version
			found = append(found, below)
		}
	}
	return found, nil
}

// unpack unpacks a packed sub-chart into a temporary folder.
func (s *subcharts) unpack(packed string) (subchart, error) {
	temporary, err := os.MkdirTemp(s.work, "")
	folder := filepath.Join(temporary, "chart") // with the rights of any folder, as it may go into the project
	if err == nil {
		err = unpack(packed, folder, &s.used)
	}
	return subchart{place: place{folder: folder, origin: folder, within: folder}, packed: packed}, err
}

// unpackInPlace puts the folder of a packed sub-chart, which has got what it lacked, in the place of the file.
func unpackInPlace(s subchart) error {
	if err := os.Remove(s.packed); err != nil {
		return err
	}
	return os.Rename(s.folder, strings.TrimSuffix(s.packed, ".tgz"))
}

// isPresent reports whether a sub-chart is there already.
func isPresent(d *chart.Dependency, present []subchart) bool {
	return slices.ContainsFunc(present, func(s subchart) bool {
		_, fits := s.isNamed([]*chart.Dependency{d})
		return fits
	})
}

// isNamed reports whether dependencies name the sub-chart, and whether one of them names its version.
func (s subchart) isNamed(all []*chart.Dependency) (isNamed, fits bool) {
	for _, d := range all {
		isNamed = isNamed || d.Name == s.name
		fits = fits || d.Name == s.name && chartutil.IsCompatibleRange(d.Version, s.version)
	}
	return isNamed, fits
}

// add puts a sub-chart into the folder charts.
func (s *subcharts) add(ctx context.Context, at place, d *chart.Dependency) (subchart, error) {
	if d.Version == "" {
		return subchart{}, errors.New("Chart.yaml does not name its version: name a range, such as ^1.0.0")
	}
	path, isFolder := strings.CutPrefix(d.Repository, "file://")
	switch {
	case isFolder:
		return s.addFolder(at, d, path)
	case d.Repository == "" || s.repositories == nil:
		return subchart{}, errors.New("the folder charts does not have it: put it there, or name its repository in Chart.yaml")
	case !strings.Contains(d.Repository, "://"):
		return subchart{}, errors.New("its repository in Chart.yaml is not an address: write oci://…, https://… or file://…; a name such as @example is in the configuration of one user only")
	}
	data, err := s.fetch(ctx, d)
	if err != nil {
		return subchart{}, err
	}
	temporary := filepath.Join(s.work, "fetched.tgz")
	if err := writeFile(temporary, data); err != nil {
		return subchart{}, err
	}
	added, err := s.unpack(temporary)
	if err != nil {
		return added, fmt.Errorf("the chart of %s cannot be unpacked: %w", public(d.Repository), err)
	}
	if err := added.check(d, added.folder); err != nil {
		return added, err
	}
	fetched := Subchart{Name: added.name, Repository: d.Repository, Version: added.version, Digest: digestOf(data)}
	if !slices.Contains(s.fetched, fetched) {
		s.fetched = append(s.fetched, fetched)
	}
	added.packed = filepath.Join(at.folder, "charts", fetched.file())
	return added, writeFile(added.packed, data)
}

// addFolder copies a sub-chart from a folder.
func (s *subcharts) addFolder(at place, d *chart.Dependency, path string) (added subchart, err error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(at.origin, path)
	}
	if at.within != "" {
		if inside, err := isInside(path, at.within); err != nil || !inside {
			return added, fmt.Errorf("%s leads out of the packed chart: put the sub-chart into the folder charts", d.Repository)
		}
	}
	if err := added.check(d, path); err != nil {
		return added, err
	}
	added.place = place{folder: filepath.Join(at.folder, "charts", added.name+"-"+added.version), origin: path, within: at.within}
	return added, copyFolder(FormChart, path, added.folder, &s.used)
}

// check takes the name and the version from the files in a folder, if they are those that are wanted.
func (s *subchart) check(d *chart.Dependency, folder string) error {
	head, err := readHead(folder)
	if err != nil {
		return fmt.Errorf("there is no chart in %s: %w", public(d.Repository), err)
	}
	s.name, s.version = head.Name(), head.Metadata.Version
	if s.name != d.Name || !chartutil.IsCompatibleRange(d.Version, s.version) {
		return fmt.Errorf("%s has %s %s in its place: correct the name or the version in Chart.yaml", public(d.Repository), s.name, s.version)
	}
	return nil
}

// fetch returns a packed sub-chart: if one on record fits, the newest of them, which is the one that was chosen then.
func (s *subcharts) fetch(ctx context.Context, d *chart.Dependency) ([]byte, error) {
	known := Subchart{Name: d.Name, Repository: d.Repository, Version: d.Version}
	for _, r := range s.recorded {
		fits := r.Name == d.Name && r.Repository == d.Repository && chartutil.IsCompatibleRange(d.Version, r.Version)
		if fits && (known.Digest == "" || chartutil.IsCompatibleRange(">"+known.Version, r.Version)) {
			known = r
		}
	}
	for name, data := range s.files {
		if strings.HasSuffix(name, "/charts/"+known.file()) && digestOf(data) == known.Digest {
			return data, nil
		}
	}
	if s.progress != nil {
		s.progress(fmt.Sprintf("fetch the sub-chart %s %s", d.Name, known))
	}
	data, err := s.repositories.FetchVersion(ctx, d.Repository, d.Name, known.Version)
	if err == nil && known.Digest != "" && digestOf(data) != known.Digest {
		err = fmt.Errorf("%s has another chart with this version than before, with the digest %s in place of %s: if this is right, remove its entry from %s", public(d.Repository), digestOf(data), known.Digest, recordFile)
	}
	return data, err
}

// locked returns dependencies with the versions and repositories of the lock file.
func locked(c *chart.Chart, wanted []*chart.Dependency) (exact []*chart.Dependency, err error) {
	all, lock := c.Metadata.Dependencies, c.Lock.Dependencies
	isOf := func(d, l *chart.Dependency) bool { return l != nil && l.Name == d.Name }
	if !slices.EqualFunc(all, lock, isOf) || !isLockOf(c) {
		differences := strings.Join(lockDifferences(all, lock), "; ")
		return nil, fmt.Errorf("its lock file does not fit its dependencies: %s: renew it by helm dependency update, or remove it to fetch the newest versions that fit", differences)
	}
	for at, d := range all {
		if slices.Contains(wanted, d) {
			copied := *d
			copied.Version, copied.Repository = lock[at].Version, lock[at].Repository
			exact = append(exact, &copied)
		}
	}
	return exact, nil
}

// isLockOf reports whether the lock file was made for the dependencies: it has a digest of both.
func isLockOf(c *chart.Chart) bool {
	var asked []*chart.Dependency
	for at, d := range c.Metadata.Dependencies {
		copied := *d
		if strings.HasPrefix(d.Repository, "@") || strings.HasPrefix(d.Repository, "alias:") {
			copied.Repository = c.Lock.Dependencies[at].Repository // the address for this name
		}
		asked = append(asked, &copied)
	}
	text, err := json.Marshal([2][]*chart.Dependency{asked, c.Lock.Dependencies})
	textOfHelm2, errOfHelm2 := json.Marshal(map[string]any{"dependencies": c.Metadata.Dependencies})
	return err == nil && c.Lock.Digest == digestOf(text) ||
		errOfHelm2 == nil && c.Metadata.APIVersion == chart.APIVersionV1 && c.Lock.Digest == digestOf(textOfHelm2)
}

// lockDifferences says what has changed since a lock file was made.
func lockDifferences(all, lock []*chart.Dependency) (differences []string) {
	for _, d := range all {
		var version, repository string
		named, fits := false, false
		for _, l := range lock {
			if l != nil && l.Name == d.Name {
				named, version, repository = true, l.Version, l.Repository
				fits = fits || chartutil.IsCompatibleRange(d.Version, l.Version)
			}
		}
		switch {
		case !named:
			differences = append(differences, "it lacks "+d.Name)
		case !fits:
			differences = append(differences, fmt.Sprintf("it has %s %s, and Chart.yaml names %s", d.Name, version, d.Version))
		case repository != d.Repository:
			differences = append(differences, fmt.Sprintf("it has %s of %s, and Chart.yaml of %s", d.Name, public(repository), public(d.Repository)))
		}
	}
	for _, l := range lock {
		if l != nil && !slices.ContainsFunc(all, func(d *chart.Dependency) bool { return d.Name == l.Name }) {
			differences = append(differences, fmt.Sprintf("it has %s, which Chart.yaml does not name", l.Name))
		}
	}
	if len(differences) == 0 {
		return []string{"the order, a condition, a tag, an alias or another field has changed since"}
	}
	return differences
}

// changedSubcharts says which other sub-charts than before were fetched.
func changedSubcharts(before, after []Subchart) (notes []string) {
	gone := slices.DeleteFunc(slices.Clone(before), func(s Subchart) bool { return slices.Contains(after, s) })
	for _, s := range after {
		if slices.Contains(before, s) {
			continue
		}
		at := slices.IndexFunc(gone, func(was Subchart) bool { return was.Name == s.Name })
		if at < 0 {
			notes = append(notes, fmt.Sprintf("the sub-chart %s %s is new", s.Name, s))
			continue
		}
		notes = append(notes, fmt.Sprintf("the sub-chart %s changes from %s to %s", s.Name, gone[at], s))
		gone = slices.Delete(gone, at, at+1)
	}
	for _, s := range gone {
		notes = append(notes, fmt.Sprintf("the sub-chart %s %s is not fetched any more", s.Name, s))
	}
	return notes
}

func digestOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// public returns an address without what may be secret.
func public(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "its repository"
	}
	parsed.User, parsed.RawQuery = nil, ""
	return parsed.String()
}
