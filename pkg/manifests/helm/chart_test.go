// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
)

// packed returns a chart archive with these files.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for name, text := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestTheDigestIsThatOfTheFiles(t *testing.T) {
	digest := func(fsys fs.FS) string {
		t.Helper()
		g, err := helm.New(fsys, "web", helm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return renders.Digest(g)
	}
	files := map[string]string{"web/Chart.yaml": chartFile, "web/templates/a.yaml": manifest("x")}
	one := digest(folder(files))
	if again := digest(fstest.MapFS{"web": {Data: packed(t, files)}}); one == "" || again != one {
		t.Errorf("got %q, and packed %q", one, again)
	}
	if other := digest(folder(map[string]string{"web/templates/a.yaml": manifest("y")})); other == one {
		t.Error("another chart has the same digest")
	}
}

func TestWhatIsNoChartIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		fsys fs.FS
		root string
		want string
	}{
		{"no file system", nil, "web", "the file system is nil"},
		{"a path that leads out", fstest.MapFS{}, "../web", "want a slash-separated path below the root"},
		{"an absolute path", fstest.MapFS{}, "/web", "want a slash-separated path below the root"},
		{"a path with a line end", fstest.MapFS{}, "we\nb", "file does not exist"},
		{"nothing", fstest.MapFS{}, "web", "file does not exist"},
		{"a folder without Chart.yaml", fstest.MapFS{"web/a.yaml": {}}, "web", "Chart.yaml file is missing"},
		{"a file that is not packed", fstest.MapFS{"web": {Data: []byte("x")}}, "web", "it is no packed chart"},
		{"half a packed chart", fstest.MapFS{"web": {Data: packed(t, map[string]string{"web/Chart.yaml": chartFile})[:40]}}, "web", "it is no packed chart"},
		{"an archive that leads out", fstest.MapFS{"web": {Data: packed(t, map[string]string{"web/../../x": "x"})}}, "web", "illegally references parent directory"},
		{"a library", folder(map[string]string{"web/Chart.yaml": chartFile + "type: library\n"}), "web", "library charts are not installable"},
		{"a missing sub-chart", folder(map[string]string{"web/Chart.yaml": chartFile + "dependencies: [{name: db, version: 1.x.x}]\n"}), "web", "missing in charts/ directory: db"},
		{"a broken sub-chart", folder(map[string]string{"web/charts/db/x.yaml": ""}), "web", "error unpacking subchart db"},
		{"values that do not parse", folder(map[string]string{"web/values.yaml": "a: [\n"}), "web", "cannot load values.yaml"},
		{"a later version of charts", folder(map[string]string{"web/Chart.yaml": "apiVersion: v3\nname: web\nversion: 1.0.0\n"}), "web", `chart web: Chart.yaml: apiVersion "v3" is not supported; Helm installs charts of v1 and v2`},
		{"no version of charts", folder(map[string]string{"web/Chart.yaml": "apiVersion: apps/v1\nname: web\nversion: 1.0.0\n"}), "web", `apiVersion "apps/v1" is not supported`},
		{"a wrong alias", folder(map[string]string{"web/Chart.yaml": chartFile + "dependencies: [{name: db, alias: 'a b'}]\n"}), "web", "disallowed characters in the alias"},
		{"a symbolic link to a folder above", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/templates/x": {Mode: fs.ModeSymlink, Data: []byte("../../web")}}, "web", "templates/x: links lead in a circle to folder web"},
		{"a symbolic link that leads out", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/templates/x.yaml": {Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}}, "web", "templates/x.yaml: the symbolic link leads out of the file system; put a copy in its place"},
		{"a pipe", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/templates/x.yaml": {Mode: fs.ModeNamedPipe}}, "web", "templates/x.yaml: it is no regular file"},
		{"a chart that leads out", fstest.MapFS{"web": {Mode: fs.ModeSymlink, Data: []byte("../other")}}, "web", `chart "web": the symbolic link leads out of the file system`},
		{"rules that are a pipe", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/.helmignore": {Mode: fs.ModeNamedPipe}}, "web", "web/.helmignore: it is no regular file"},
		{"rules that lead out", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/.helmignore": {Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}}, "web", "web/.helmignore: the symbolic link leads out of the file system"},
		{"rules that are not supported", folder(map[string]string{"web/.helmignore": "a/**\n"}), "web", "double-star"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := helm.New(test.fsys, test.root, helm.Options{})
			wantError(t, err, test.want)
			if _, again := g.Generate(t.Context(), "ns", "app", nil); again == nil || again.Error() != err.Error() {
				t.Errorf("then got %v", again)
			}
		})
	}
}

// Links are followed as Helm does, but not out of the file system.
func TestLinksInAChartAreFollowed(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(root.MkdirAll(path.Dir(name), 0o700), root.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("web/Chart.yaml", chartFile)
	write("web/.helmignore", "templates/ignored\n")
	write("web/templates/b.yaml", manifest(`{{ .Files.Get "LICENSE" }}{{ .Files.Get "files/x.txt" }}{{ .Files.Get "out.txt" }}{{ .Files.Get "gone.txt" }}`))
	write("common/values.yaml", "a: 1\n")
	write("common/more/a.yaml", manifest(`{{ .Values.a }}`))
	write("common/files/x.txt", "text")
	write("LICENSE", "free ")
	for link, target := range map[string]string{
		"web/values.yaml": "../common/values.yaml", "web/templates/more": "../../common/more", "web/files": "../common/files", "web/LICENSE": "../LICENSE",
		"web/gone.txt": "nowhere", "web/templates/gone.yaml": "nowhere", "web/out.txt": outside, "web/templates/ignored": outside,
		"common/files/again": "../files/x.txt",
	} {
		if err := root.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	for name, fsys := range map[string]fs.FS{"a folder": os.DirFS(root.Name()), "a root": root.FS()} {
		g, err := helm.New(fsys, "web", helm.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		objects, err := manifests.Generate(t.Context(), g, "ns", "app", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, object := range objects {
			text, _, _ := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "data", "v")
			got = append(got, text)
		}
		if diff := cmp.Diff([]string{"free text", "1"}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// hanging is a file system with files that cannot be opened in time.
type hanging struct{ release chan struct{} }

func (h hanging) Open(name string) (fs.File, error) {
	<-h.release
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func TestAFileSystemThatHangsIsAbandoned(t *testing.T) {
	h := hanging{release: make(chan struct{})}
	defer close(h.release)
	_, err := helm.New(h, "web", helm.Options{Timeout: 20 * time.Millisecond})
	var late *timeout.Error
	if !errors.As(err, &late) {
		t.Errorf("got the error %v", err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	_, err := helm.New(folder(nil), "web", helm.Options{CRDs: "sometimes", KubeVersion: "x"})
	wantError(t, err, `option CRDs: "sometimes" is not one of apply, once, never`, "option KubeVersion")
}

// Helm installs the items of a list one by one, and looks for hooks in the list.
func TestListsAreSplitIntoTheirItems(t *testing.T) {
	item := func(name string) string { return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}" }
	text := "apiVersion: v1\nkind: List\nitems:\n- " + item("a") + "\n- {apiVersion: v1, kind: List, items: [" + item("b") + "]}\n---\n" +
		"apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: c}}]\n---\n" +
		"apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-install}}\nitems: [" + item("d") + "]\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: e}\n"
	got := ownAnnotations(t, text, 1, helm.Options{})
	if diff := cmp.Diff([]string{"e", "c", "a", "b", "d apply-order=-20000"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	crds := folder(map[string]string{"web/crds/a.yaml": "apiVersion: v1\nkind: List\nitems: [" + item("a") + ", " + item("b") + "]\n"})
	objects, err := render(t.Context(), crds, nil, helm.Options{})
	if err != nil || len(objects) != 2 {
		t.Errorf("got %v, %v", objects, err)
	}
}

func TestTheReleaseIsTheDeployment(t *testing.T) {
	action := `{{ with .Release }}{{ .Name }} {{ .Namespace }} {{ .Revision }} {{ .IsInstall }} {{ .IsUpgrade }} {{ .Service }}{{ end }}`
	for revision, want := range map[int64]string{1: "app ns 1 true false Helm", 7: "app ns 7 false true Helm"} {
		got, err := evaluate(reconciling(t.Context(), revision), action, nil, helm.Options{})
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if got, err := evaluate(t.Context(), "{{ .Release.Service }}", nil, helm.Options{ReleaseService: "shop.example.com"}); err != nil || got != "shop.example.com" {
		t.Errorf("got %q, %v, want the option", got, err)
	}
}

func TestTheDefaultsOfAChartAreItsValues(t *testing.T) {
	g, err := helm.New(folder(map[string]string{"web/Chart.yaml": chartFile, "web/values.yaml": "a: {b: 1}\n"}), "web", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []manifests.Generator{g, manifests.Transform(g)} {
		if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": int64(1)}}, renders.DefaultValues(g)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestTheOptionsFixTheCapabilities(t *testing.T) {
	action := `{{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has "x/v1" }} {{ .Capabilities.APIVersions.Has "apps/v1" }}`
	got, err := evaluate(t.Context(), action, nil, helm.Options{KubeVersion: "1.31.2", APIVersions: []string{"x/v1"}})
	if want := "v1.31.2 31 true false"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	_, err = render(t.Context(), folder(map[string]string{"web/Chart.yaml": chartFile + "kubeVersion: '>=1.40.0'\n"}), nil, helm.Options{KubeVersion: "1.31.2"})
	wantError(t, err, "chart web requires Kubernetes >=1.40.0, and the target has v1.31.2")
}
