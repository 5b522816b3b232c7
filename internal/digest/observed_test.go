// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import "testing"

func TestObservedHashCoversEverythingButStatusAndServerKeptFields(t *testing.T) {
	const before = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","uid":"1","resourceVersion":"5","generation":1,"labels":{"a":"b"}},"spec":{"a":1},"status":{"x":1}}`
	tests := []struct {
		name, after string
		same        bool
	}{
		{"status", `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","uid":"1","resourceVersion":"6","generation":1,"labels":{"a":"b"}},"spec":{"a":1},"status":{"x":2}}`, true},
		{"server-kept metadata", `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","uid":"1","generation":2,"managedFields":[{}],"creationTimestamp":"x","deletionTimestamp":"y","deletionGracePeriodSeconds":0,"selfLink":"z","labels":{"a":"b"}},"spec":{"a":1}}`, true},
		{"the type, which lists may leave out", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"}},"spec":{"a":1}}`, true},
		{"a label", `{"metadata":{"name":"a","uid":"1","labels":{"a":"c"}},"spec":{"a":1}}`, false},
		{"a new annotation", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"},"annotations":{"x":"y"}},"spec":{"a":1}}`, false},
		{"a finalizer", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"},"finalizers":["x"]},"spec":{"a":1}}`, false},
		{"another incarnation", `{"metadata":{"name":"a","uid":"2","labels":{"a":"b"}},"spec":{"a":1}}`, false},
		{"spec", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"}},"spec":{"a":2}}`, false},
		{"a new field", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"}},"spec":{"a":1},"data":{}}`, false},
		{"metadata that is no map", `{"metadata":"a","spec":{"a":1}}`, false},
		{"no metadata", `{"spec":{"a":1}}`, false},
		{"what the controller of Deployments counts", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"},"annotations":{"deployment.kubernetes.io/revision":"2"}},"spec":{"a":1}}`, true},
		{"another annotation beside it", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"},"annotations":{"deployment.kubernetes.io/revision":"2","x":"y"}},"spec":{"a":1}}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if same := (Hasher{}).ObservedHash(parse(t, before)) == (Hasher{}).ObservedHash(parse(t, tt.after)); same != tt.same {
				t.Errorf("same is %t", same)
			}
		})
	}
	if (Hasher{}).ObservedHash(nil) == (Hasher{}).ObservedHash(parse(t, before)) {
		t.Error("nothing is as good as something")
	}
}
