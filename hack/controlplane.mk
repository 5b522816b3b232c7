# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# The real control plane for tests and the demo: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, kubectl and a pod simulator in one
# binary, with a link for each name that envtest and test/env look for.
# To be included from the Makefile at the root of the repository.

GO ?= go

# The versions of Kubernetes that the tests know, the default first. Another one can be built, too:
# make controlplane CONTROLPLANE_VERSION=v1.37.1 writes its requirements before.
CONTROLPLANE_VERSIONS := v1.37.2 v1.36.3 v1.35.4 v1.34.4
CONTROLPLANE_DEFAULT := $(firstword $(CONTROLPLANE_VERSIONS))
CONTROLPLANE_VERSION := $(CONTROLPLANE_DEFAULT)

# $(call controlplane-mod,VERSION) is the file with its requirements, in hack/controlplane.
controlplane-mod = $(if $(filter $(CONTROLPLANE_DEFAULT),$(1)),go.mod,versions/$(1).mod)
CONTROLPLANE_MOD := $(call controlplane-mod,$(CONTROLPLANE_VERSION))
CONTROLPLANE_DIR := bin/k8s$(if $(filter $(CONTROLPLANE_DEFAULT),$(CONTROLPLANE_VERSION)),,-$(CONTROLPLANE_VERSION))
CONTROLPLANE_PROGRAMS := etcd kube-apiserver kube-controller-manager kube-scheduler kubectl podsim
CONTROLPLANE_SOURCES := hack/controlplane.mk hack/controlplane/$(CONTROLPLANE_MOD) \
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
controlplane: $(addprefix $(CONTROLPLANE_DIR)/,$(CONTROLPLANE_PROGRAMS)) ## Build the real control plane into bin/k8s (once; minutes on a cold cache). CONTROLPLANE_VERSION=v1.34.4: into bin/k8s-v1.34.4.

# Built beside its place and renamed, so that a broken build leaves the old one
# and half a file is never started.
$(CONTROLPLANE_DIR)/controlplane: $(CONTROLPLANE_SOURCES)
	@mkdir -p $(@D)
	@echo "building the control plane $(CONTROLPLANE_VERSION) into $(@D): some minutes the first time, then cached"
	@next="$(CURDIR)/$@.$$$$"; trap 'rm -f "$$next"' EXIT; \
	( $(CONTROLPLANE_GO) build -trimpath -buildvcs=false -modfile=$(CONTROLPLANE_MOD) -ldflags '$(CONTROLPLANE_LDFLAGS)' -o "$$next" . ) && mv -f "$$next" $@

$(addprefix $(CONTROLPLANE_DIR)/,$(CONTROLPLANE_PROGRAMS)): $(CONTROLPLANE_DIR)/controlplane
	@ln -sf controlplane $@

.PHONY: controlplane-versions
controlplane-versions: ## Build the control plane of each version that the tests know.
	@for version in $(CONTROLPLANE_VERSIONS); do $(MAKE) --no-print-directory controlplane CONTROLPLANE_VERSION=$$version || exit; done

.PHONY: controlplane-mod
controlplane-mod: ## Write the requirements of the control plane, from the versions in hack/controlplane.mk.
	rm -rf bin/versions
	@$(foreach version,$(CONTROLPLANE_VERSIONS),GO='$(GO)' hack/controlplane-mod.sh $(version) \
		$(patsubst hack/controlplane/versions/%,bin/versions/%,hack/controlplane/$(call controlplane-mod,$(version))) &&) :
	rm -rf hack/controlplane/versions && mv bin/versions hack/controlplane/versions

hack/controlplane/versions/%.mod:
	GO='$(GO)' hack/controlplane-mod.sh $* $@

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
	rm -rf bin/k8s bin/k8s-*
