// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
)

// The manifests that scenarios are made of. Annotations come in pairs, without
// their prefix; a name can be "namespace/name".

func configMap(name, version string, annotations ...string) string {
	return head("v1", "ConfigMap", name, annotations) + "data: {version: " + quoted(version) + "}\n"
}

func secret(name, version string, annotations ...string) string {
	return head("v1", "Secret", name, annotations) + "stringData: {version: " + quoted(version) + "}\n"
}

func service(name, port string, annotations ...string) string {
	return head("v1", "Service", name, annotations) + "spec: {ports: [{name: p, port: " + port + "}]}\n"
}

func serviceAccount(name string) string { return head("v1", "ServiceAccount", name, nil) }

func namespace(name string, annotations ...string) string {
	return head("v1", "Namespace", name, annotations)
}

// job is complete as soon as its controller looks at it.
func job(name, version string, annotations ...string) string {
	return head("batch/v1", "Job", name, annotations) +
		"spec: {completions: 0, parallelism: 0, template: {metadata: {annotations: {version: " + quoted(version) + "}}, " +
		"spec: {restartPolicy: Never, containers: [{name: c, image: 'task:1'}]}}}\n"
}

// crd is the type Gear of the scenario's own group.
func crd(annotations ...string) string {
	return head("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gears.$ID.e2e.corbel.run", annotations) +
		"spec: {group: $ID.e2e.corbel.run, scope: Namespaced, names: {plural: gears, singular: gear, kind: Gear, listKind: GearList}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n"
}

// gear is an instance of the type; it is ready as soon as it exists.
func gear(name, version string, annotations ...string) string {
	annotations = append(annotations, "ready-when", "true")
	return head("$ID.e2e.corbel.run/v1", "Gear", name, annotations) + "spec: {version: " + quoted(version) + "}\n"
}

func head(apiVersion, kind, name string, annotations []string) string {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n", apiVersion, kind)
	if namespace, rest, found := strings.Cut(name, "/"); found {
		text += "  namespace: " + namespace + "\n"
		name = rest
	}
	text += "  name: " + name + "\n"
	if len(annotations) == 0 {
		return text
	}
	text += "  annotations:\n"
	for i := 0; i < len(annotations); i += 2 {
		key := annotations[i]
		if !strings.Contains(key, "/") {
			key = reconcilerName + "/" + key
		}
		text += "    " + key + ": " + quoted(annotations[i+1]) + "\n"
	}
	return text
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }
