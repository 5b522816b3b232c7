# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# The real control plane for tests and the demo: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, kubectl and a pod simulator in one
# binary, with a link for each name that envtest and test/env look for.
# To be included from the Makefile at the root of the repository.

GO ?= go

CONTROLPLANE_VERSION := v1.36.3
CONTROLPLANE_DIR := bin/k8s
CONTROLPLANE_PROGRAMS := etcd kube-apiserver kube-controller-manager kube-scheduler kubectl podsim
CONTROLPLANE_SOURCES := hack/controlplane.mk hack/controlplane/go.mod hack/controlplane/go.sum \
	$(shell find hack/controlplane -name '*.go' ! -name '*_test.go')

# Without gitVersion the server calls itself v0.0.0-master, and every chart that
# asks for a kubeVersion refuses to be installed.
CONTROLPLANE_VERSION_PARTS := $(subst ., ,$(CONTROLPLANE_VERSION:v%=%))
CONTROLPLANE_LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(CONTROLPLANE_VERSION) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(CONTROLPLANE_VERSION_PARTS)) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(CONTROLPLANE_VERSION_PARTS)) \
	-X k8s.io/component-base/version.gitTreeState=clean

# The nested module's tests use the flags of the binary, so that both share one build cache.
CONTROLPLANE_GO := cd hack/controlplane && GOWORK=off $(GO)

.PHONY: controlplane
controlplane: $(addprefix $(CONTROLPLANE_DIR)/,$(CONTROLPLANE_PROGRAMS)) ## Build the real control plane into bin/k8s (once; minutes on a cold cache).

# Built beside its place and renamed, so that a broken build leaves the old one
# and half a file is never started.
$(CONTROLPLANE_DIR)/controlplane: $(CONTROLPLANE_SOURCES)
	@mkdir -p $(@D)
	@echo "building the control plane $(CONTROLPLANE_VERSION) into $(@D): some minutes the first time, then cached"
	@next="$(CURDIR)/$@.$$$$"; trap 'rm -f "$$next"' EXIT; \
	( $(CONTROLPLANE_GO) build -trimpath -buildvcs=false -ldflags '$(CONTROLPLANE_LDFLAGS)' -o "$$next" . ) && mv -f "$$next" $@

$(addprefix $(CONTROLPLANE_DIR)/,$(CONTROLPLANE_PROGRAMS)): $(CONTROLPLANE_DIR)/controlplane
	@ln -sf controlplane $@

# Without vet, which would read every package of Kubernetes for it.
.PHONY: controlplane-test
controlplane-test: ## Test the pod simulator's own rules.
	$(CONTROLPLANE_GO) test -trimpath -vet=off ./...

# The simulator only: the rest is a list of programs, and vet would take minutes.
.PHONY: controlplane-vet
controlplane-vet: ## Vet the pod simulator.
	$(CONTROLPLANE_GO) vet -trimpath ./podsim/...

.PHONY: controlplane-clean
controlplane-clean: ## Remove the built control plane.
	rm -rf $(CONTROLPLANE_DIR)
