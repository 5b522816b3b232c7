// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func learnText(t *testing.T, text string) *Field {
	t.Helper()
	root, _, err := Learn(Source{Values: []byte(text)})
	check.NoError(t, err)
	return root
}

func TestSelect(t *testing.T) {
	root := learnText(t, "image: {tag: x, repository: y/z}\nreplicaCount: 1\na.b: {c: 1, d: 2}\nlivenessProbe: {enabled: true}\nhosts: [{name: x}]")
	for _, test := range []struct {
		name  string
		paths []string
		want  []string
	}{
		{"leaves, in the order of the tree", []string{"replicaCount", "image.tag"}, []string{"image", "image.tag", "replicaCount"}},
		{"an object is whole", []string{"image", "image.tag"}, []string{"image", "image.tag", "image.repository"}},
		{"keys with dots, and spaces around", []string{" a.b.d "}, []string{"a.b", "a.b.d"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			selected := check.Must(Select(root, test.paths))(t)
			check.EqualNamed(t, "the fields differ", test.want, pathsBelow(selected, ""))
		})
	}
	t.Run("the fields of a Kubernetes type are left out with it", func(t *testing.T) {
		selected := check.Must(Select(root, []string{"livenessProbe.enabled"}))(t)
		check.SameNamed(t, "the object still has the fields of", "", selected.Fields[0].Core)
	})
	t.Run("it is a copy", func(t *testing.T) {
		selected := check.Must(Select(root, []string{"image"}))(t)
		selected.Fields[0].Fields[0].Key = "changed"
		check.SameNamed(t, "the original has the key", "tag", root.Fields[0].Fields[0].Key)
	})
}

func TestSelectRefuses(t *testing.T) {
	root := learnText(t, "image: {tag: x, repository: y/z}\nreplicaCount: 1\nhosts: [{name: x}]")
	for _, test := range []struct {
		name  string
		paths []string
		want  []string
	}{
		{"nothing", nil, []string{"no values are selected"}},
		{"all mistakes", []string{"image.tags", "image.tag", "replicacount", "tag", "", "unlike.anything"},
			[]string{`"image.tags" (like "image.tag")`, `"replicacount" (like "replicaCount")`, `"tag" (like "image.tag")`, `"";`, `"unlike.anything"`}},
		{"elements", []string{"hosts.name"}, []string{`"hosts.name"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Fails(t, check.ErrorOf(Select(root, test.paths)), test.want...)
		})
	}
}

// curated returns the tree of the curated values.
func curated(t *testing.T, root *Field, chart string) *Field {
	t.Helper()
	paths, _ := Curated(root, chart, Documents{})
	if len(paths) == 0 {
		return &Field{Type: Object}
	}
	selected := check.Must(Select(root, paths))(t)
	return selected
}

func TestCurated(t *testing.T) {
	for _, test := range []struct {
		name, chart, values string
		want                []string
	}{
		{name: "nothing is known", values: "a: {}\nb: {c: 2}"},
		{name: "the top level comes first", values: "web: {replicas: 1, resources: {}}\nreplicas: 2\nsidecar: {image: {tag: v1}}\nimage: {tag: v2, pullPolicy: Always, debug: true}",
			want: []string{"web", "web.resources", "replicas", "image", "image.tag", "image.pullPolicy"}},
		{name: "one component", values: "db: {resources: {}, persistence: {size: 1Gi}}\nfront: {replicas: 2, resources: {}, service: {type: ClusterIP}}\ncache: {service: {type: ClusterIP}, persistence: {size: 1Gi}}\nimage: {tag: x}",
			want: []string{"db", "db.resources", "db.persistence", "db.persistence.size", "front", "front.replicas", "front.service", "front.service.type", "image", "image.tag"}},
		{name: "the component with the name of the chart", chart: "argo-cd", values: "controller: {image: {tag: a}, replicas: 1, resources: {}}\nargoCD: {image: {tag: b}, replicas: 1, resources: {}}",
			want: []string{"argoCD", "argoCD.image", "argoCD.image.tag", "argoCD.replicas", "argoCD.resources"}},
		{name: "the component with a usual name", values: "alertmanager: {image: {tag: a}, replicaCount: 1, resources: {}, persistence: {size: 1Gi}}\nserver: {image: {tag: b}, replicaCount: 1, resources: {}, persistence: {size: 1Gi}, service: {type: x}}",
			want: []string{"server", "server.image", "server.image.tag", "server.replicaCount", "server.resources", "server.persistence", "server.persistence.size", "server.service", "server.service.type"}},
		{name: "helpers are not the application", values: "global: {image: {tag: x}}\nmetrics: {enabled: true, resources: {}, image: {tag: y}, service: {type: x}}\nvolumePermissions: {resources: {}}",
			want: []string{"metrics", "metrics.enabled"}},
		{name: "not more than two dozen", values: "image: {repository: a, tag: b, pullPolicy: c}\nreplicaCount: 1\nresources: {}\ningress: {enabled: true, hosts: [{host: a, path: b, c: c, d: d, e: e, f: f}], className: c, tls: []}\n" +
			"persistence: {enabled: true, size: 1Gi, storageClass: x}\nservice: {type: x, port: 1}\nauth: {existingSecret: x}\nautoscaling: {enabled: true}\nmetrics: {enabled: true}\nnodeSelector: {}\ntolerations: []\naffinity: {}",
			want: []string{"image", "image.repository", "image.tag", "image.pullPolicy", "replicaCount", "resources", "ingress", "ingress.enabled", "ingress.hosts", "ingress.className",
				"persistence", "persistence.enabled", "persistence.size", "persistence.storageClass", "service", "service.type", "service.port", "auth", "auth.existingSecret",
				"autoscaling", "autoscaling.enabled", "metrics", "metrics.enabled", "nodeSelector", "tolerations", "affinity"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			curated := curated(t, learnText(t, test.values), test.chart)
			check.EqualNamed(t, "the fields differ", test.want, pathsBelow(curated, ""))
			if total, _ := Leaves(curated); total > maxCurated {
				t.Errorf("there are %d leaves", total)
			}
		})
	}
}
