// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/corbel-run/corbel/test/check"
)

// shelf is a set of repositories in memory. Its keys are "REPOSITORY NAME VERSION".
type shelf struct {
	charts  map[string][]byte
	fetched []string
}

func (s *shelf) FetchVersion(_ context.Context, repository, name, version string) ([]byte, error) {
	var newest string
	for key := range s.charts {
		if has, ok := strings.CutPrefix(key, repository+" "+name+" "); ok && has > newest && chartutil.IsCompatibleRange(version, has) {
			newest = has
		}
	}
	if newest == "" {
		return nil, fmt.Errorf("%s has none", repository)
	}
	s.fetched = append(s.fetched, name+" "+newest)
	return s.charts[repository+" "+name+" "+newest], nil
}

// put packs a chart, and puts it into a repository.
func (s *shelf) put(t *testing.T, repository, name, version string, dependencies ...string) {
	t.Helper()
	if s.charts == nil {
		s.charts = map[string][]byte{}
	}
	s.charts[repository+" "+name+" "+version] = packedChart(t, name, version, dependencies...)
}

func packedChart(t *testing.T, name, version string, dependencies ...string) []byte {
	t.Helper()
	return []byte(read(t, archive(t, map[string]string{name + "/Chart.yaml": chartFile(name, version, dependencies...)})))
}

// chartFile returns a Chart.yaml.
func chartFile(name, version string, dependencies ...string) string {
	return fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\ndependencies: [%s]\n", name, version, strings.Join(dependencies, ", "))
}

const (
	near, far = "https://near.example.com", "oci://far.example.com/charts"
	db        = "{name: db, version: ^1.0.0, repository: '" + near + "'}"
	cache     = "{name: cache, version: '*', repository: '" + far + "'}"
)

// lockOf returns a lock file with the digest of a text, which is what Helm makes of dependencies.
func lockOf(text, dependencies string) string {
	return fmt.Sprintf("dependencies: [%s]\ndigest: %s\n", dependencies, digestOf([]byte(text)))
}

// filesBelow lists the files of a folder.
func filesBelow(t *testing.T, folder string) (names []string) {
	t.Helper()
	check.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	}))
	return names
}

func TestSubchartsThatAChartLacksAreFetched(t *testing.T) {
	s := shelf{}
	for _, version := range []string{"1.0.0", "1.2.0", "2.0.0"} {
		s.put(t, near, "db", version)
	}
	s.put(t, far, "cache", "3.0.0")
	s.put(t, near, "web", "1.0.0", db)
	const asked, answered = `{"name":"db","version":"^1.0.0","repository":"` + near + `"}`, `{"name":"db","version":"1.0.0","repository":"` + near + `"}`
	exact := "{name: db, version: 1.0.0, repository: '" + near + "'}"
	folder := func(files ...string) string {
		parent := t.TempDir()
		writeFiles(t, parent, files...)
		return filepath.Join(parent, "shop")
	}
	for name, test := range map[string]struct {
		source      string
		want, fetch []string
		note        string
	}{
		"nothing is lacking": {source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0"))},
		"the newest versions that fit": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0", db, cache)),
			want:   []string{"cache-3.0.0.tgz", "db-1.2.0.tgz"}, fetch: []string{"db 1.2.0", "cache 3.0.0"},
		},
		"those of the lock file": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0", db), "shop/Chart.lock", lockOf("[["+asked+"],["+answered+"]]", exact)),
			want:   []string{"db-1.0.0.tgz"}, fetch: []string{"db 1.0.0"},
		},
		"a name in place of an address, which the lock file has": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0", "{name: db, version: ^1.0.0, repository: '@near'}"), "shop/Chart.lock", lockOf("[["+asked+"],["+answered+"]]", exact)),
			want:   []string{"db-1.0.0.tgz"}, fetch: []string{"db 1.0.0"},
		},
		"a lock file of Helm 2": {
			source: folder("shop/Chart.yaml", "name: shop\nversion: 1.0.0\n", "shop/requirements.yaml", "dependencies: ["+db+"]", "shop/requirements.lock", lockOf(`{"dependencies":[`+asked+`]}`, exact)),
			want:   []string{"db-1.0.0.tgz"}, fetch: []string{"db 1.0.0"},
		},
		"one chart by several aliases, and another version of it": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0", db, strings.Replace(db, "{", "{alias: a, ", 1), strings.Replace(db, "{name: db, version: ^1", "{alias: b, name: db, version: ^2", 1))),
			want:   []string{"db-1.2.0.tgz", "db-2.0.0.tgz"}, fetch: []string{"db 1.2.0", "db 2.0.0"},
		},
		"folders and packed charts stay": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0", db, cache), "shop/charts/mine/Chart.yaml", chartFile("db", "1.1.0"), "shop/charts/cache.tgz", string(packedChart(t, "cache", "0.1.0"))),
			want:   []string{"cache.tgz", "mine/Chart.yaml"},
		},
		"a version that does not fit stays": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0", db), "shop/charts/db/Chart.yaml", chartFile("db", "0.1.0")),
			want:   []string{"db/Chart.yaml"}, note: "the folder charts of chart shop has db 0.1.0, which does not fit the version in Chart.yaml",
		},
		"the sub-charts of a fetched one": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0", "{name: web, version: '*', repository: '"+near+"'}")),
			want:   []string{"web-1.0.0/Chart.yaml", "web-1.0.0/charts/db-1.2.0.tgz"}, fetch: []string{"web 1.0.0", "db 1.2.0"},
		},
		"the sub-charts of a folder and of a packed chart": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0"), "shop/charts/a/Chart.yaml", chartFile("a", "1.0.0", db), "shop/charts/b.tgz", string(packedChart(t, "b", "1.0.0", cache))),
			want:   []string{"a/Chart.yaml", "a/charts/db-1.2.0.tgz", "b/Chart.yaml", "b/charts/cache-3.0.0.tgz"}, fetch: []string{"db 1.2.0", "cache 3.0.0"},
		},
		"folders beside the chart": {
			source: folder("shop/Chart.yaml", chartFile("shop", "1.0.0", "{name: a, version: 1.x, repository: 'file://../a'}"),
				"a/Chart.yaml", chartFile("a", "1.0.0", "{name: b, version: '*', repository: 'file://../b'}"), "a/.helmignore", "notes", "a/notes", "x", "b/Chart.yaml", chartFile("b", "1.0.0")),
			want: []string{"a-1.0.0/.helmignore", "a-1.0.0/Chart.yaml", "a-1.0.0/charts/b-1.0.0/Chart.yaml"},
		},
		"a folder in a packed chart": {
			source: archive(t, map[string]string{"shop/Chart.yaml": chartFile("shop", "1.0.0", "{name: a, version: '*', repository: 'file://parts/a'}"), "shop/parts/a/Chart.yaml": chartFile("a", "1.0.0")}),
			want:   []string{"a-1.0.0/Chart.yaml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage, source, o := t.TempDir(), Source{Form: FormChart, Path: test.source, Repositories: &s}, Options{Form: FormChart}
			s.fetched = nil
			check.Must(source.copyTo(stage, &Options{}))(t)
			check.NoError(t, os.MkdirAll(filepath.Join(stage, "chart/charts"), 0o755))
			notes := check.Must(o.fetchSubcharts(t.Context(), source, stage, nil, nil))(t)
			check.EqualNamed(t, "fetched", test.fetch, s.fetched)
			check.EqualNamed(t, "in the folder charts", test.want, filesBelow(t, filepath.Join(stage, "chart/charts")))
			if len(o.Subcharts) != len(test.fetch) {
				t.Errorf("on record are %v", o.Subcharts)
			}
			if got := strings.Join(notes, "\n"); (got == "") != (test.note == "") || !strings.Contains(got, test.note) {
				t.Errorf("got the notes %q, want %q", got, test.note)
			}
		})
	}
}

func TestSubchartsThatCannotBeHadAreExplained(t *testing.T) {
	s := shelf{}
	s.put(t, near, "db", "1.0.0")
	s.put(t, near, "endless", "1.0.0", "{name: endless, version: '*', repository: '"+near+"'}")
	s.charts[near+" other 1.0.0"] = packedChart(t, "another", "1.0.0")
	s.charts[near+" text 1.0.0"] = []byte("text")
	s.charts[near+" link 1.0.0"] = []byte(read(t, archive(t, nil, "link/values.yaml")))
	s.charts[near+" out 1.0.0"] = []byte(read(t, archive(t, map[string]string{"out/../../Chart.yaml": "x"})))
	var large bytes.Buffer // it says how large it is at its start
	zipped := gzip.NewWriter(&large)
	check.NoError(t, tar.NewWriter(zipped).WriteHeader(&tar.Header{Name: "large/values.yaml", Size: maxSourceBytes + 1, Typeflag: tar.TypeReg}))
	check.NoError(t, zipped.Close())
	s.charts[near+" large 1.0.0"] = large.Bytes()
	of := func(name string) string { return "{name: " + name + ", version: '*', repository: '" + near + "'}" }
	lock := func(dependencies string) []string {
		return []string{"Chart.yaml", chartFile("shop", "1.0.0", db), "Chart.lock", "dependencies: [" + dependencies + "]\ndigest: sha256:0\n"}
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = of(fmt.Sprintf("db%d", i))
	}
	for name, test := range map[string]struct {
		files, want []string
	}{
		"several mistakes": {[]string{"Chart.yaml", chartFile("shop", "1.0.0", "{name: a, version: 1.x}", "{name: b, version: 1.x, repository: '@b'}", "{name: d, repository: '"+near+"'}", cache), "charts/c/Chart.yaml", chartFile("c", "1.0.0", of("none"))}, []string{
			"sub-chart a 1.x of chart shop: the folder charts does not have it", "sub-chart b 1.x of chart shop: its repository in Chart.yaml is not an address", "sub-chart d of chart shop: Chart.yaml does not name its version",
			"sub-chart cache * of chart shop: " + far + " has none", "sub-chart none * of chart shop/c: " + near + " has none",
		}},
		"a lock file without it":                {lock(""), []string{"chart shop: its lock file does not fit its dependencies: it lacks db: renew it by helm dependency update, or remove it"}},
		"a lock file with more":                 {lock(db + ", " + cache), []string{"it has cache, which Chart.yaml does not name"}},
		"a lock file with another version":      {lock("{name: db, version: 0.1.0, repository: '" + near + "'}"), []string{"it has db 0.1.0, and Chart.yaml names ^1.0.0"}},
		"a lock file with another repository":   {lock("{name: db, version: 1.0.0, repository: 'https://ann:secret@b.example.com?token=secret'}"), []string{"it has db of https://b.example.com, and Chart.yaml of " + near}},
		"a lock file with another digest":       {lock("{name: db, version: 1.0.0, repository: '" + near + "'}"), []string{"a condition, a tag, an alias or another field has changed since"}},
		"a lock file with nothing in its place": {lock("null"), []string{"it lacks db"}},
		"no folder":                             {[]string{"Chart.yaml", chartFile("shop", "1.0.0", "{name: a, version: '*', repository: 'file://../a'}")}, []string{"sub-chart a * of chart shop: there is no chart in file://../a"}},
		"a folder with another version":         {[]string{"Chart.yaml", chartFile("shop", "1.0.0", "{name: a, version: 2.x, repository: 'file://a'}"), "a/Chart.yaml", chartFile("a", "1.0.0")}, []string{"file://a has a 1.0.0 in its place"}},
		"another chart":                         {[]string{"Chart.yaml", chartFile("shop", "1.0.0", of("other"))}, []string{near + " has another 1.0.0 in its place"}},
		"a text":                                {[]string{"Chart.yaml", chartFile("shop", "1.0.0", of("text"))}, []string{"cannot be unpacked: it is not a packed chart"}},
		"a packed link":                         {[]string{"Chart.yaml", chartFile("shop", "1.0.0", of("link"))}, []string{"link/values.yaml is neither a file nor a folder"}},
		"a packed file that leads out":          {[]string{"Chart.yaml", chartFile("shop", "1.0.0", of("out"))}, []string{"is not inside the folder of the chart"}},
		"a packed chart that is too large":      {[]string{"Chart.yaml", chartFile("shop", "1.0.0", of("large"))}, []string{"the chart of " + near + " cannot be unpacked: it has more than 20000 files or 200 MiB"}},
		"a damaged packed chart":                {[]string{"Chart.yaml", chartFile("shop", "1.0.0"), "charts/a.tgz", "x"}, []string{"chart shop: charts/a.tgz: it is not a packed chart"}},
		"too many":                              {[]string{"Chart.yaml", chartFile("shop", "1.0.0", many...)}, []string{"chart shop: there are more than 500 sub-charts"}},
		"without end":                           {[]string{"Chart.yaml", chartFile("shop", "1.0.0", of("endless"))}, []string{"sub-charts are nested deeper than 20 levels: shop/endless/endless"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder, parent := t.TempDir(), t.TempDir()
			writeFiles(t, folder, test.files...)
			source := Source{Form: FormChart, Path: folder, Repositories: &s}
			_, err := Create(t.Context(), Options{Kind: "Shop", Group: "shop.example.com"}, source, Corbel{}, filepath.Join(parent, "shop-operator"), Toolchain{Go: "true"})
			check.Fails(t, err, test.want...)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("it quotes a secret: %v", err)
			}
			check.Equal(t, []string(nil), filesBelow(t, parent))
		})
	}
	t.Run("the time is over", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("it takes too long"))
		stage, o := t.TempDir(), Options{Form: FormChart}
		writeFiles(t, stage, "chart/Chart.yaml", chartFile("shop", "1.0.0", cache))
		check.Fails(t, check.ErrorOf(o.fetchSubcharts(ctx, Source{Path: stage, Repositories: &s}, stage, nil, nil)), "it takes too long")
	})
	t.Run("a folder outside of a packed chart", func(t *testing.T) {
		stage, o := t.TempDir(), Options{Form: FormChart}
		source := Source{Form: FormChart, Path: archive(t, map[string]string{"shop/Chart.yaml": chartFile("shop", "1.0.0", "{name: a, version: '*', repository: 'file:///etc'}", "{name: b, version: '*', repository: 'file://../b'}")})}
		check.Must(source.copyTo(stage, &Options{}))(t)
		check.Fails(t, check.ErrorOf(o.fetchSubcharts(t.Context(), source, stage, nil, nil)), "file:///etc leads out of the packed chart", "file://../b leads out of the packed chart")
	})
}

func TestAnUpdateTakesTheSameSubcharts(t *testing.T) {
	s := shelf{}
	s.put(t, near, "db", "1.0.0")
	source, project := Source{Form: FormChart, Path: t.TempDir(), Repositories: &s}, filepath.Join(t.TempDir(), "shop-operator")
	writeFiles(t, source.Path, "Chart.yaml", chartFile("shop", "1.0.0", db))
	check.Must(Create(t.Context(), Options{Kind: "Shop", Group: "shop.example.com"}, source, Corbel{Version: "v0.0.0"}, project, Toolchain{Go: "true"}))(t)
	recorded := func() []Subchart { return check.Must(readRecord(project))(t).Subcharts }
	check.Equal(t, []Subchart{{Name: "db", Repository: near, Version: "1.0.0", Digest: digestOf(s.charts[near+" db 1.0.0"])}}, recorded())

	s.put(t, near, "db", "1.1.0")
	s.fetched = nil
	update := func(dependency string) Report {
		writeFiles(t, source.Path, "Chart.yaml", chartFile("shop", "1.1.0", dependency))
		return check.Must(Update(t.Context(), project, source, Corbel{Version: "v0.0.0"}, Toolchain{Go: "true"}))(t)
	}
	report := update(db)
	if report.Notes != nil || s.fetched != nil || recorded()[0].Version != "1.0.0" {
		t.Errorf("the same sub-chart: %+v, fetched %v", report, s.fetched)
	}
	report = update(strings.Replace(db, "^1.0.0", "^1.1.0", 1))
	check.Equal(t, []string{"the sub-chart db changes from 1.0.0 of " + near + " to 1.1.0 of " + near}, report.Notes)
	check.Equal(t, []string{"chart/Chart.yaml", "chart/charts/db-1.0.0.tgz", "chart/charts/db-1.1.0.tgz"}, report.Files)
	s.put(t, far, "cache", "3.0.0")
	report = update(cache)
	check.Equal(t, []string{"the sub-chart cache 3.0.0 of " + far + " is new", "the sub-chart db 1.1.0 of " + near + " is not fetched any more"}, report.Notes)

	// A chart may have several versions of a sub-chart, by aliases.
	versions := func(versions ...string) (list []Subchart) {
		for _, version := range versions {
			list = append(list, Subchart{Name: "db", Repository: near, Version: version})
		}
		return list
	}
	check.Equal(t, []string{"the sub-chart db changes from 2.0.0 of " + near + " to 2.1.0 of " + near}, changedSubcharts(versions("1.0.0", "2.0.0"), versions("1.0.0", "2.1.0")))
	check.Equal(t, []string{"the sub-chart db 2.0.0 of " + near + " is new"}, changedSubcharts(versions("1.0.0"), versions("1.0.0", "2.0.0")))
	check.Equal(t, []string{"the sub-chart db 1.0.0 of " + near + " is not fetched any more"}, changedSubcharts(versions("1.0.0", "2.0.0"), versions("2.0.0")))

	// Of two on record the newer one is taken. The repository has another chart with this version, and the project has none.
	old, newer := Subchart{Name: "db", Repository: near, Version: "1.0.0", Digest: "sha256:1"}, Subchart{Name: "db", Repository: near, Version: "1.1.0", Digest: "sha256:0"}
	o := Options{Form: FormChart, Subcharts: []Subchart{old, newer}}
	s.put(t, near, "db", "1.2.0")
	stage := t.TempDir()
	writeFiles(t, stage, "chart/Chart.yaml", chartFile("shop", "1.0.0", db))
	check.Fails(t, check.ErrorOf(o.fetchSubcharts(t.Context(), source, stage, nil, nil)),
		"sub-chart db ^1.0.0 of chart shop: "+near+" has another chart with this version than before", "in place of sha256:0", "remove its entry from corbel.yaml")
}
