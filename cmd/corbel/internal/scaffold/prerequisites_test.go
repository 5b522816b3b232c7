// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func TestObjectsThatPodsNeedAndNothingRendersArePrerequisites(t *testing.T) {
	golden := `apiVersion: v1
kind: ConfigMap
metadata: {name: rendered}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  template:
    spec:
      initContainers:
      - name: migrate
        envFrom: [{secretRef: {name: migration}}, {configMapRef: {name: maybe, optional: true}}]
      containers:
      - name: web
        env:
        - {name: A, valueFrom: {secretKeyRef: {name: database, key: user}}}
        - {name: B, valueFrom: {secretKeyRef: {name: database, key: password}}}
        - {name: C, valueFrom: {configMapKeyRef: {name: rendered, key: c}}}
        - {name: D, value: plain}
      volumes:
      - {name: ca, projected: {sources: [{configMap: {name: kube-root-ca.crt}}, {configMap: {name: settings, items: [{key: a, path: a}]}}]}}
      - {name: tmp, emptyDir: {}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: web-system}
spec:
  jobTemplate: {spec: {template: {spec: {containers: [{name: job}], volumes: [{name: certificate, secret: {secretName: webhook}}]}}}}
---
apiVersion: example.com/v1
kind: Workload
metadata: {name: other, namespace: default}
spec: {containers: [{name: a, envFrom: [{secretRef: {name: of-an-operator}}]}]}
`
	file, notes, err := prerequisites([]byte(golden))
	check.NoError(t, err)
	check.Equal(t, prerequisitesComment+`apiVersion: v1
data:
  a: change-me
kind: ConfigMap
metadata:
  name: settings
---
apiVersion: v1
kind: Secret
metadata:
  name: database
stringData:
  password: change-me
  user: change-me
---
apiVersion: v1
kind: Secret
metadata:
  name: migration
stringData: {}
`, string(file))
	check.Equal(t, []string{
		"pods of the sample need the Secret webhook in the namespace web-system, and nothing renders it",
		"pods of the sample need objects that nothing renders: samples/prerequisites/objects.yaml has them, with values to replace",
	}, notes)
	file, notes, err = prerequisites([]byte("apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"))
	if file != nil || notes != nil || err != nil {
		t.Errorf("got %s, %v, %v", file, notes, err)
	}
}
