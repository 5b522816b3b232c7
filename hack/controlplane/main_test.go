// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestChoose(t *testing.T) {
	programs := map[string]func(){"etcd": func() {}, "kubectl": func() {}}
	for _, test := range []struct {
		name     string
		args     []string
		wantArgs []string // nil: nothing is chosen
	}{
		{"by the name of a link", []string{"/bin/k8s/etcd", "--help"}, []string{"/bin/k8s/etcd", "--help"}},
		{"by the first argument", []string{"./controlplane", "kubectl", "get", "pods"}, []string{"kubectl", "get", "pods"}},
		{"the link's name goes before the argument", []string{"kubectl", "etcd"}, []string{"kubectl", "etcd"}},
		{"an unknown program", []string{"controlplane", "docker"}, nil},
		{"no program", []string{"controlplane"}, nil},
		{"not even a name", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			program, args, ok := choose(test.args, programs)
			if ok != (test.wantArgs != nil) || (program != nil) != ok {
				t.Fatalf("a program is chosen: %t, want %t", ok, test.wantArgs != nil)
			}
			if ok && !slices.Equal(args, test.wantArgs) {
				t.Errorf("the program sees %q, want %q", args, test.wantArgs)
			}
		})
	}
}
