// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Packages with the tests that notice mutants.
const (
	clusterTests    = "./internal/cluster"
	executeTests    = "./pkg/reconciler/internal/execute"
	observeTests    = "./pkg/reconciler/internal/observe"
	desiredTests    = "./pkg/reconciler/internal/desired"
	sharedTests     = "./pkg/reconciler/internal/shared"
	planTests       = "./pkg/reconciler/internal/plan"
	digestTests     = "./internal/digest"
	definitionTests = "./pkg/reconciler/internal/definition"
	reconcilerTests = "./pkg/reconciler"
	componentTests  = "./pkg/component"
	sessionTests    = "./internal/session"
	manifestsTests  = "./pkg/manifests"
	eventsTests     = "./internal/events"
	inventoryTests  = "./internal/inventory"
	revisionsTests  = "./internal/revisions"
	patchTests      = "./pkg/patch"
	podsTests       = "./internal/pods"
	fleetTests      = "./pkg/component/internal/fleet"
	verdictTests    = "./pkg/component/internal/verdict"
	secretsTests    = "./internal/confidential"
	kubeconfigTests = "./internal/kubeconfig"
	outputsTests    = "./pkg/component/internal/outputs"
	requireTests    = "./pkg/component/internal/references"
	conditionTests  = "./internal/requirement"
	statusTests     = "./pkg/status"
)

// mutants are the rules of the engine, each broken in one way. The old texts are
// short, so that they seldom have to follow a change of the code.
var mutants = []mutant{
	// What a request says about what it is based on.
	{"a DELETE without the uid", "internal/cluster/write.go", "&metav1.Preconditions{UID: &uid}", "&metav1.Preconditions{}", []string{clusterTests}},
	{"a DELETE without the resourceVersion", "internal/cluster/write.go", "options.Preconditions.ResourceVersion = &resourceVersion", "_ = resourceVersion", []string{clusterTests}},
	{"a step deletes without the resourceVersion", "pkg/reconciler/internal/execute/delete.go", "step.UID, step.ResourceVersion", `step.UID, ""`, []string{executeTests}},
	{"a write without the resourceVersion", "pkg/reconciler/internal/execute/write.go", `metadata["resourceVersion"] = step.ResourceVersion`, "_ = step.ResourceVersion", []string{executeTests}},
	{"a write without the uid", "pkg/reconciler/internal/execute/write.go", `metadata["uid"] = string(step.UID)`, "_ = step.UID", []string{executeTests}},
	{"an orphaning without the resourceVersion", "pkg/reconciler/internal/execute/delete.go", `"resourceVersion": step.ResourceVersion,`, "", []string{executeTests}},
	{"an orphaning without the uid", "pkg/reconciler/internal/execute/delete.go", `"uid":             step.UID,`, "", []string{executeTests}},
	{"an orphan refers to the component", "pkg/reconciler/internal/execute/delete.go", "append(slices.Clone(step.Removes), step.Owner.Ref.UID)", "step.Removes", []string{executeTests}},
	{"an orphan waits for what it refers to", "pkg/reconciler/internal/plan/orphan.go", "return u.live.HasOwnerReferences && ", "return false && ", []string{planTests}},
	{"a shared type is recorded", "pkg/reconciler/internal/plan/next.go", "u.dropped = u.isSharedType()", "u.dropped = false", []string{planTests}},
	{"a shared type with the label of its former owner leaves the record", "pkg/reconciler/internal/plan/next.go", " && !u.isOurs())", ")", []string{planTests}},
	{"a lower version of a shared type replaces a higher one", "pkg/reconciler/internal/shared/decide.go", "case order > 0:", "case false:", []string{sharedTests}},
	{"two processes replace a shared type of one version in turns", "pkg/reconciler/internal/shared/decide.go", "case has.Hash != in.Want.Hash && in.Written:", "case false:", []string{sharedTests}},
	{"a shared type of another owner is replaced", "pkg/reconciler/internal/shared/decide.go", `owner != "" {`, "false {", []string{sharedTests}},
	{"a shared type of a former version is deleted with its owner", "pkg/reconciler/shared.go", "items[i].DeletePolicy = v1alpha1.DeletePolicyOrphan", "_ = i", []string{reconcilerTests}},
	{"a stored set changes a shared type", "pkg/reconciler/internal/desired/share.go", `known.Hash == "" || in.Stored ||`, `known.Hash == "" ||`, []string{desiredTests}},
	{"a shared type counts as that of a component", "pkg/reconciler/internal/plan/ownership.go", "	case live.Shared != \"\":", "	case false:", []string{planTests}},
	{"a webhook of ours that cannot be called waits for what it blocks", "pkg/reconciler/internal/plan/waves.go", "case u.mendsWebhook:", "case false:", []string{planTests}},
	{"a dead webhook that is to be orphaned is removed", "pkg/reconciler/internal/plan/deadwebhooks.go", "return !w.willOrphan(u, reason) && !w.in.Retain[u.key]", "return true", []string{planTests}},
	{"a dead webhook that no manifest has waits for the writes", "pkg/reconciler/internal/plan/deadwebhooks.go", "if c.mendsWebhook && c.desired == nil {", "if false {", []string{planTests}},
	{"a namespace counts as created by an operator because it says so", "pkg/reconciler/look.go", "automatic != live.Automatic {", "automatic == \"\" {", []string{reconcilerTests}},
	{"a namespace that an operator has created is deleted although it has an owner", "pkg/reconciler/internal/plan/namespaces.go", "&& u.relation == unowned &&", "&&", []string{planTests}},
	{"a shared namespace is dropped from the record while it is used", "pkg/reconciler/internal/plan/remove.go", "&& !u.shared {", "{", []string{planTests}},
	{"the webhooks are listed at each write that one changes", "pkg/reconciler/internal/execute/altered.go", "if !m.at.IsZero() && time.Since(m.at) < webhooksAge {", "if false {", []string{executeTests}},
	{"a generated ConfigMap is pruned while pods may use it", "pkg/reconciler/internal/plan/remove.go", "&& generated &&", "&& generated && false &&", []string{planTests}},
	{"the manifest of a creation is not forgotten before another one is sent", "pkg/reconciler/internal/plan/record.go", `other := u.item.Intended != "" && u.item.Intended != u.desired.Digest`, "other := false", []string{planTests}},
	{"a generated ConfigMap waits for ever for a workload", "pkg/reconciler/internal/plan/remove.go", "&& !w.in.TimedOut &&", "&&", []string{planTests}},
	{"a deletion that orphans deletes the dependents", "pkg/component/cascade.go", "slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents)", "slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents)", []string{componentTests}},
	{"the Secret of the revisions outlives its component", "pkg/component/delete.go", "if obj.GetStatus().Revision != 0 || obj.GetStatus().Inventory.Chunks != nil {", "if false {", []string{componentTests}},
	{"an apply that creates does not demand absence", "pkg/reconciler/internal/execute/write.go", `metadata["resourceVersion"] = "1"`, "_ = metadata", []string{executeTests}},
	{"a label that the former owner puts back stays", "pkg/reconciler/internal/plan/ownership.go", "case ReasonAdopted, ReasonUnconfirmed, ReasonOwnershipShared:", "case ReasonAdopted, ReasonUnconfirmed:", []string{executeTests}},
	{"finalizers of others are dropped", "pkg/reconciler/internal/execute/write.go", "union(e.withoutForeign(step), object.GetFinalizers())", "union(nil, object.GetFinalizers())", []string{executeTests}},

	{"an object that is older than its owner is removed after a loss of the record", "pkg/reconciler/recover.go", "object.CreationTimestamp.Time.Before(s.request.Since)", "false", []string{reconcilerTests}},
	{"a type that may not be listed is left out although nothing else was looked for", "pkg/reconciler/recover.go", "len(refusals) > 0 && len(refusals) == len(asked)", "false", []string{reconcilerTests}},
	{"a lost status counts as that of a new component", "pkg/component/internal/record/rebuild.go", "	status.Inventory.Lose()\n", "", []string{componentTests}},
	{"what is handed over counts as released by mistake", "pkg/reconciler/internal/plan/orphan.go", "(u.desired != nil || u.isRekeyed() || isSealed(u.item, u.live))", "true", []string{planTests, reconcilerTests}},
	{"an object with another controller counts as released by mistake", "pkg/reconciler/internal/plan/orphan.go", `ownership.Controller.UID == "" && in.AwaitedBy`, "in.AwaitedBy", []string{planTests}},
	{"any object of a former operator is inherited", "pkg/reconciler/internal/plan/ownership.go", "slices.Equal(ownership.Marks, []Mark{{o.Former, o.ID, o.Ref}})", "true", []string{planTests}},
	{"a finalizer is removed that the status gives to no former operator", "pkg/component/internal/identity/identity.go", "former == obj.GetStatus().Reconciler {", "true {", []string{componentTests}},
	{"a component of another operator is written", "pkg/component/internal/identity/identity.go", "finalizer == o.Name || !slices.Contains(obj.GetFinalizers(), finalizer)", "true", []string{componentTests}},
	{"a part of an inventory is written without its resourceVersion", "internal/inventory/secret.go", `metadata["uid"], metadata["resourceVersion"] = to.uid, to.resourceVersion`, `metadata["uid"] = to.uid`, []string{inventoryTests}},
	{"a component is written without its resourceVersion", "pkg/patch/write.go", `metadata["resourceVersion"] = resourceVersion`, "_ = resourceVersion", []string{patchTests}},
	{"an inventory that does not decode is dropped from the status", "pkg/component/undecodable.go", `field == "inventory" || `, "", []string{componentTests}},
	{"content of a later revision is replaced after a conflict", "internal/revisions/store.go", "number >= u.Revision.Number", "number < 0", []string{revisionsTests}},

	// What counts as drift.
	{"an empty map that is gone is no drift", "internal/digest/applied.go", "if !present && ChoosesByPresence(key) {", "if false {", []string{digestTests}},
	{"a selector of everything may be narrowed", "internal/digest/applied.go", "if SelectsAll(key) && IsZero(manifest) {", "if false {", []string{digestTests}},
	{"a hash of an earlier version is replaced without a comparison", "pkg/reconciler/internal/plan/unit.go", `earlier != "" && earlier == u.item.AppliedHash`, `earlier != ""`, []string{planTests}},

	// What a write leaves to others.
	{"an override takes over what is ignored", "pkg/reconciler/internal/execute/apply.go", "|| !isOurs && slices.ContainsFunc(a.ignored, lies)", "", []string{executeTests}},
	{"a field of another manager is replaced", "pkg/reconciler/internal/execute/exclude.go", `manager != "" {`, "false {", []string{executeTests}},
	{"a PUT resets what has an owner by design", "pkg/reconciler/internal/execute/write.go", "keepPath(object.Object, live.Object, path)", "_ = path", []string{executeTests}},

	// What a plan sends.
	{"a write of a plan is stored", "internal/cluster/dryrun.go", `params["dryRun"] = metav1.DryRunAll`, "_ = metav1.DryRunAll", []string{clusterTests}},
	{"a DELETE of a plan is executed", "internal/cluster/write.go", "options.DryRun = []string{metav1.DryRunAll}", "_ = metav1.DryRunAll", []string{clusterTests}},

	// What an answer proves.
	{"Forbidden is absent", "pkg/types/types.go", "return status.Reason == metav1.StatusReasonNotFound &&", "return (status.Reason == metav1.StatusReasonNotFound || status.Reason == metav1.StatusReasonForbidden) &&", []string{clusterTests}},
	{"any answer to a DELETE means gone", "internal/cluster/write.go", "return false, object, nil", "return true, nil, nil", []string{clusterTests}},
	{"aggregated servers are ignored when a type is gone", "internal/cluster/definitions.go", "aggregated = true", "aggregated = false", []string{clusterTests}},
	{"definitions are ignored when a type is gone", "internal/cluster/definitions.go", "defined || kind == gk.Kind", `kind == ""`, []string{clusterTests}},

	// What must not be lost.
	{"a hook of a chart is applied with all others", "pkg/reconciler/internal/desired/unprocessed.go", `isHook && hook != "crd-install"`, `false && isHook && hook != ""`, []string{desiredTests}},
	{"an encrypted Secret is applied", "pkg/reconciler/internal/desired/unprocessed.go", "isEncrypted(i.content) || i.hasEncryptedData()", "false", []string{desiredTests}},
	{"no record before the steps", "pkg/reconciler/run.go", "if next.MustRecord {", "if false {", []string{reconcilerTests}},
	{"foreign instances are ignored", "pkg/reconciler/internal/execute/instances.go", "c.foreignTotal++", "c.foreignTotal = 0", []string{executeTests}},
	{"allow-empty is always given", "pkg/reconciler/input.go", "len(in.Desired) == 0 && !allowEmpty", "false", []string{reconcilerTests}},
	{"allow-empty is ignored", "pkg/reconciler/input.go", "len(in.Desired) == 0 && !allowEmpty", "len(in.Desired) == 0", []string{reconcilerTests}},
	{"a refused confirmation of the owner is ignored", "pkg/reconciler/confirm.go", "if err := f.confirm(ctx); err != nil {", "if err := f.confirm(ctx); err != nil && false {", []string{reconcilerTests}},
	{"the namespace of the owner may be deleted", "pkg/reconciler/internal/plan/orphan.go", "key.Name == w.in.Owner.Ref.Namespace", "false", []string{reconcilerTests}},
	{"events hold credentials", "internal/events/recorder.go", "confidential.Filter(fmt.Sprintf(note, args...))", `fmt.Sprintf(note, args...)+confidential.Filter("")`, []string{eventsTests}},

	{"patches of users change Secrets", "pkg/component/internal/rendering/render.go", "if !secrets {", "if false {", []string{componentTests}},
	{"a wide patch changes Secrets", "pkg/manifests/transform/patches.go", "(secrets || !holdsSecret(object.Object, maxNesting))", "true", []string{componentTests}},

	// What the planner decides.
	{"workloads go before instances that have finalizers", "pkg/reconciler/internal/plan/stages.go", "u.instance || u.mayNeedOperator()", "u.instance", []string{planTests}},
	{"a forbidden deletion forgets what lives elsewhere", "pkg/component/delete.go", "if len(elsewhere) > 0 {", "if false {", []string{componentTests}},
	{"the namespace of a tenant is taken as being deleted", "pkg/component/delete.go", "err == nil && !namespace.DeletionTimestamp.IsZero()", "err == nil", []string{componentTests}},
	{"what cannot be read is removed", "pkg/reconciler/internal/plan/remove.go", "case !u.live.known():", "case false:", []string{planTests}},
	{"a repair of what was applied last removes what came later", "pkg/reconciler/input.go", "in.Retain[plan.KeyOf(item)] = item.Digest, true", "in.Retain[plan.KeyOf(item)] = item.Digest, false", []string{reconcilerTests}},
	{"a repair of what was applied last takes back what came later", "pkg/reconciler/input.go", "made[d.Key] != d.Digest ||", "false ||", []string{reconcilerTests}},
	{"what a rollback retains is removed", "pkg/reconciler/internal/plan/remove.go", "if w.in.Retain[u.key] && (w.in.RepairOnly || u.live.Existence != Absent) {", "if false {", []string{planTests}},
	{"what a rollback retains is deleted to be created again", "pkg/reconciler/internal/plan/apply.go", "if w.in.Retain[u.key] {", "if false {", []string{planTests}},
	{"what the owner needs may be deleted", "pkg/reconciler/internal/plan/orphan.go", "if w.in.Protected[key] {", "if false {", []string{reconcilerTests}},
	{"the order of removal is ignored", "pkg/reconciler/internal/plan/remove.go", "blocked = blocked || slices.ContainsFunc(", "blocked = false && slices.ContainsFunc(", []string{planTests}},
	{"orphan-on-delete is ignored", "pkg/reconciler/internal/plan/orphan.go", "return policy.OrphansOnDelete(p)", "return p == v1alpha1.DeletePolicyOrphan", []string{planTests}},
	{"an unknown manifest counts as another one", "pkg/reconciler/internal/plan/digest.go", "return recorded == desired", "return false", []string{planTests}},
	{"what is not known is recreated whatever it is", "pkg/reconciler/internal/plan/digest.go", "u.item.UID == u.live.UID && !u.live.Differs", "false", []string{planTests}},
	{"the digests of another key are believed", "pkg/component/internal/record/record.go", "by.Key != r.sealer.Key", "false", []string{componentTests}},
	{"a generator with another digest is another revision", "pkg/component/internal/revision/digests.go", "case err != nil || !same:", "case err != nil || !same || same:", []string{componentTests}},
	{"any generator renders the same", "pkg/component/internal/revision/digests.go", "sum == recorded.Manifests", `sum != ""`, []string{componentTests}},
	{"another generator is compared without a hook", "pkg/component/internal/revision/digests.go", "len(left) > 0 && recorded", "len(left) > 9 && recorded", []string{componentTests}},
	{"a hook makes a revision of a status without a generator", "pkg/component/internal/revision/digests.go", `recorded.Generator != "" {`, `recorded.Generator != "-" {`, []string{componentTests}},
	{"an answer that is missing counts as other objects", "pkg/component/internal/revision/digests.go", "cluster.IsUnavailable(err), isServerFailure", "cluster.IsUnavailable(nil), isServerFailure", []string{componentTests}},
	{"a component that stays the same takes a place of a roll-out", "pkg/component/internal/fleet/member.go", `madeWith != "" && madeWith != generator:`, `madeWith != "" && madeWith == "":`, []string{componentTests}},
	{"a pinned component forgets its generator", "pkg/component/internal/revision/rollback.go", "pinned := spec\n", "pinned := Digests{Component: spec.Component, Generator: spec.Generator}\n", []string{componentTests}},
	{"options do not count for the digest of a chart", "pkg/manifests/helm/generator.go", "g.digest += sum.Digest()", "_ = sum", []string{manifestsTests}},
	{"transformers do not count for a digest", "pkg/manifests/digest.go", "sums = append(sums, transformer.sum())", "_ = transformer", []string{manifestsTests}},
	{"new objects need no record", "pkg/reconciler/internal/plan/record.go", "u.intend() || !u.recorded || must", "u.intend() || must", []string{planTests}},
	{"an unknown outcome counts as an answer", "pkg/reconciler/internal/plan/record.go", "r.Observation.Existence == Unknown", "false", []string{planTests}},
	{"any object may be adopted", "pkg/reconciler/internal/plan/ownership.go", "return adopts.Unowned\n", "return true\n", []string{planTests}},
	{"a record proves what it says", "pkg/reconciler/internal/plan/ownership.go", "return live.Seal != \"\" && item.Seal == live.Seal", "return item.UID != \"\" && item.UID == live.UID", []string{planTests}},
	{"a controller owns nothing", "pkg/reconciler/internal/plan/ownership.go", "case ownership.Controller.UID != \"\" &&", "case false &&", []string{planTests}},
	{"what moves to another group is deleted", "pkg/reconciler/internal/plan/remove.go", "return other.live.Existence == Present && ", "return false && ", []string{planTests}},
	{"a type is removed without a guard", "pkg/reconciler/internal/plan/stages.go", "return GuardNoInstances\n", "return GuardNone\n", []string{planTests}},
	{"a namespace is removed without a guard", "pkg/reconciler/internal/plan/stages.go", "return GuardEmpty\n", "return GuardNone\n", []string{planTests}},
	{"a type that keeps what was orphaned is deleted", "pkg/reconciler/internal/plan/orphan.go", "return GuardNoInstancesElseOrphan", "return g", []string{planTests}},

	// What is done about the plan.
	{"a step is sent again for an object that changed hands", "pkg/reconciler/internal/execute/delete.go", "case !step.StillApplies(live):", "case false:", []string{executeTests}},
	{"namespaces of the cluster may be deleted", "pkg/reconciler/internal/execute/guard.go", `return name == "default" || strings.HasPrefix(name, "kube-")`, `return strings.HasPrefix(name, "default/")`, []string{executeTests}},
	{"content that cannot be listed is no content", "pkg/reconciler/internal/execute/namespace.go", "return typeListing{unread: err}, nil", "return typeListing{}, nil", []string{executeTests}},
	{"objects of unknown owners are ignored", "pkg/reconciler/internal/execute/namespace.go", "case !ok && c.listedTypes[", "case !ok || c.listedTypes[", []string{executeTests}},
	{"objects are adopted without a confirmation of the owner", "pkg/reconciler/internal/execute/write.go", "if step.TakesOwnership() {", "if false {", []string{executeTests}},
	{"what cannot be read is absent", "pkg/reconciler/internal/observe/observer.go", "return unknown(err), unserved", "return plan.Observation{Existence: plan.Absent}, unserved", []string{observeTests}},
	{"an object of a type that is not served is absent", "pkg/reconciler/internal/observe/observer.go", "known.gone && request.Desired == nil", "request.Desired == nil", []string{observeTests}},
	{"what comes back after its removal is not noticed", "pkg/reconciler/recover.go", "range c.gone {", "range c.gone[:0] {", []string{reconcilerTests}},
	{"an inventory of another cluster is accepted", "pkg/reconciler/input.go", `case recorded == "" || recorded == uid:`, "case true:", []string{reconcilerTests}},
	{"a namespace is orphaned because one read failed", "pkg/reconciler/internal/execute/guard.go", "v.orphan && step.Guard != plan.GuardKnownEmptyElseOrphan", "false", []string{executeTests}},
	{"a namespace is orphaned before the timeout", "pkg/reconciler/internal/plan/remove.go", "!w.in.Now.Before(until)", "true", []string{planTests}},
	{"a gap without a try counts as part of the timeout", "pkg/reconciler/internal/plan/namespaces.go", "w.in.Now.Sub(last.Time) > gap:", "gap < 0:", []string{planTests}},
	{"names of objects in other namespaces are shown", "pkg/reconciler/internal/execute/instances.go", "item.Namespace == c.owner.Ref.Namespace && ", "", []string{executeTests}},
	{"a field is removed from a definition", "pkg/reconciler/internal/definition/schema.go", `c.add(at, FieldRemoved, "the field is removed")`, "_ = at", []string{definitionTests}},
	{"a stored version is removed from a definition", "pkg/reconciler/internal/definition/breaking.go", "case index < 0 && isStored:", "case false:", []string{definitionTests}},
	{"an instance of another uid is ours", "pkg/reconciler/blockers.go", `ok && (recorded == "" || recorded == uid)`, "ok && recorded == recorded", []string{reconcilerTests}},
	{"a label alone proves an owner to a recovery", "pkg/reconciler/recover.go", "!ours || object.Labels", `ours && ref.Kind == "none" || object.Labels`, []string{reconcilerTests}},

	// What an address and an answer may do to us.
	{"an answer about another object is accepted", "internal/cluster/objects.go", "if !same || uid != id.uid {", "if false && (!same || uid != id.uid) {", []string{clusterTests}},
	{"a redirect is an answer", "internal/cluster/transport.go", "response.StatusCode/100 == 3 && ", "false && ", []string{clusterTests}},
	{"internal addresses are allowed", "internal/cluster/dialpolicy.go", "if class.prefix.Contains(addr) {", "if false && class.prefix.Contains(addr) {", []string{clusterTests}},
	{"a kubeconfig may run a program", "internal/kubeconfig/kubeconfig.go", `"token", "client-certificate-data"`, `"token", "exec", "client-certificate-data"`, []string{kubeconfigTests}},
	{"answers about Secrets are repeated", "internal/confidential/answer.go", "return IsSecret(kind) || Is(ctx)", "return Is(ctx)", []string{secretsTests, executeTests}},
	{"answers are repeated although a Secret was read", "internal/confidential/answer.go", "return IsSecret(kind) || Is(ctx)", "return IsSecret(kind)", []string{secretsTests, desiredTests}},
	{"errors of generators are repeated although a Secret was read", "internal/confidential/answer.go", "if err == nil || !Is(ctx) {", "if true {", []string{secretsTests}},
	{"a read of a Secret is not noted", "internal/confidential/client.go", "c.notes && reads", "false && c.notes && reads", []string{secretsTests}},
	{"the log has bodies that are cut off", "internal/confidential/log.go", `content["kind"] == nil {
		return true`, `content["kind"] == nil {
		return false`, []string{secretsTests}},
	{"an expression sees the values of a Secret", "pkg/status/readywhen.go", "values[key] = hiddenValue", "_, _ = key, hiddenValue", []string{statusTests}},

	// What a component publishes.
	{"a secret output is in the status", "pkg/component/internal/outputs/outputs.go", "case output.Found && output.Secret:", "case false:", []string{outputsTests}},
	{"an output of a Secret is plain", "pkg/reconciler/outputs.go", "value.OfSecret || ", "", []string{reconcilerTests}},
	{"an output of a manifest with a value of a Secret is plain", "pkg/reconciler/outputs.go", "value.OfManifest && confidential.Is(ctx)", "value.OfManifest && confidential.Is(ctx) && false", []string{reconcilerTests}},
	{"an output of an object of another owner is published", "pkg/reconciler/outputs.go", "in.Owner.Owns(live.Ownership)", "true", []string{reconcilerTests}},
	{"an output of an object that was not read is gone", "pkg/reconciler/outputs.go", "live.Existence != plan.Present || !evaluated", "!evaluated && live.Existence == plan.Present", []string{reconcilerTests}},
	{"an output that cannot be evaluated does not hold back Ready", "pkg/reconciler/internal/observe/outputs.go", "if err == nil || ", "if true || ", []string{observeTests}},
	{"an output hides that its object has failed", "pkg/reconciler/internal/observe/outputs.go", "found.Readiness != plan.Ready && found.Readiness != plan.ReadinessUnknown", "false", []string{observeTests}},
	{"a message has a value of a Secret", "pkg/reconciler/internal/observe/outputs.go", "ofSecret || output.Secret)", "output.Secret)", []string{observeTests}},
	{"a message has a value of a manifest", "pkg/status/output.go", "(secret || !o.plain)", "secret", []string{statusTests}},
	{"a message has a value of a secret output", "pkg/reconciler/internal/observe/outputs.go", "ofSecret || output.Secret)", "ofSecret)", []string{observeTests}},
	{"a message has a value that is an index", "pkg/status/output.go", " || e.AsCall().Args()[1].Kind() != celast.LiteralKind", "", []string{statusTests}},
	{"an object in the watch has outputs of other expressions", "pkg/reconciler/internal/observe/recall.go", "return !slices.ContainsFunc(outputs,", "return true || !slices.ContainsFunc(outputs,", []string{observeTests}},
	{"an expression about the spec is plain", "pkg/status/output.go", `if field != "status" && `, `if field != "status" && field != "spec" && `, []string{statusTests}},
	{"an expression about the whole object is plain", "pkg/status/output.go", `if field != "status" && `, `if field != "" && field != "status" && `, []string{statusTests}},
	{"the Secret of outputs exists before the status names it", "pkg/component/internal/outputs/outputs.go", "if err := commit(ctx); err != nil {", "if err := commit(ctx); err != nil && false {", []string{outputsTests}},
	{"a process that may be deposed writes the Secret of outputs", "pkg/component/internal/outputs/outputs.go", "if err := p.Leading(); err != nil {\n\t\treturn nil, err", "if err := p.Leading(); err != nil && false {\n\t\treturn nil, err", []string{outputsTests}},
	{"a process that may be deposed deletes the Secret of outputs", "pkg/component/internal/outputs/outputs.go", "if err := p.Leading(); err != nil {\n\t\treturn err", "if err := p.Leading(); err != nil && false {\n\t\treturn err", []string{outputsTests}},
	{"a write of the Secret of outputs without the resourceVersion", "pkg/component/internal/outputs/outputs.go", "client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})", "client.MergeFrom(secret.DeepCopy())", []string{outputsTests}},
	{"a deletion of the Secret of outputs without the uid", "pkg/component/internal/outputs/outputs.go", "client.Preconditions{UID: &secret.UID}", "client.Preconditions{}", []string{outputsTests}},
	{"a Secret of another owner gets outputs", "pkg/component/internal/outputs/outputs.go", "case !p.owns(obj, secret):", "case false:", []string{outputsTests}},
	{"a Secret of another owner is deleted with the outputs", "pkg/component/internal/outputs/outputs.go", "if err == nil && p.owns(obj, secret) {", "if err == nil {", []string{outputsTests}},
	{"a Secret of another owner counts as that of the outputs", "pkg/component/internal/outputs/outputs.go", " || !p.owns(obj, secret)) {", ") {", []string{outputsTests}},
	{"other values in the Secret of outputs are not noticed", "pkg/component/internal/outputs/outputs.go", "sum != status.OutputsDigest || ", `sum == "" || `, []string{outputsTests}},
	{"the Secret of outputs has no owner", "pkg/component/internal/outputs/outputs.go", "Name: key.Name, OwnerReferences: owners}", "Name: key.Name}", []string{outputsTests}},
	{"an output of an object that was not read leaves the status", "pkg/component/internal/outputs/outputs.go", "case output.Unknown && published:", "case false && published:", []string{outputsTests}},
	{"an output of an object that was not read leaves the Secret", "pkg/component/internal/outputs/outputs.go", "unknown = true", "unknown = false", []string{outputsTests}},

	// What a component requires.
	{"an input comes from a Secret of another owner", "pkg/component/internal/references/require.go", "return value, is && owned, nil", "return value, is && (owned || true), nil", []string{requireTests}},
	{"an input of a Secret is not confidential", "pkg/component/internal/references/require.go", "confidential.Note(ctx)", "confidential.Note(context.Background())", []string{requireTests}},
	{"any namespace may be required", "pkg/component/internal/references/require.go", "if !t.allow(namespace, component) {", "if false {", []string{requireTests}},
	{"any object without a namespace may be required", "pkg/component/internal/references/require.go", "} else if !l.terms.allow(of.namespace, l.component) {", "} else if false {", []string{requireTests}},
	{"RequireNamespaces allows all namespaces", "pkg/component/internal/references/require.go", `slices.Contains(t.Namespaces, "*")`, "len(t.Namespaces) > 0", []string{requireTests}},
	{"a component requires itself", "pkg/component/internal/references/require.go", "if kind == t.Kind && ", "if kind != t.Kind && ", []string{requireTests}},
	{"an object that is not ready is enough", "pkg/component/internal/references/require.go", "if now.Readiness != status.Ready && mustBeReady {", "if now.Readiness == status.Failed && mustBeReady {", []string{requireTests}},
	{"an output that is missing is an empty input", "pkg/component/internal/references/require.go", "if len(lacks) > 0 {", "if len(lacks) > 0 && false {", []string{requireTests}},
	{"an object that is missing is not waited for", "pkg/component/internal/references/require.go", `if missing != "" && waits {`, `if missing != "" && false {`, []string{requireTests}},
	{"a deletion waits for what the component requires", "pkg/component/internal/references/require.go", `if missing != "" && waits {`, `if missing != "" {`, []string{requireTests}},
	{"two inputs have one path", "pkg/component/internal/references/require.go", "; taken {", "; taken && false {", []string{requireTests}},
	{"an input is no part of a revision", "pkg/component/requirements.go", "; with != nil {", "; with != nil && false {", []string{componentTests}},
	{"a condition sees the spec", "internal/requirement/requirement.go", `{"status"},`, `{"status"}, {"spec"},`, []string{conditionTests}},
	{"a condition sees all metadata", "internal/requirement/requirement.go", `{"metadata", "name"}`, `{"metadata"}`, []string{conditionTests}},
	{"a condition sees the whole object", "internal/requirement/requirement.go", "object = visible(object)", "_ = visible(object)", []string{conditionTests}},

	// When a new revision is ready.
	{"a container that was started a moment ago is available", "internal/pods/available.go", "!now.Before(available) ||", "true ||", []string{podsTests}},
	{"a container that was restarted counts as one that starts", "internal/pods/available.go", `= broken, Crash, fmt.Sprintf("container %s was restarted`, `= starting, Starting, fmt.Sprintf("container %s was restarted`, []string{podsTests}},
	{"a crash loop counts as a first start", "internal/pods/available.go", `case last == nil && (`, `case true || last == nil && (`, []string{podsTests}},
	{"a pod that is being deleted has to be available", "internal/pods/available.go", "!pod.DeletionTimestamp.IsZero() || ", "", []string{podsTests}},
	{"pods are listed although containers have probes", "pkg/component/internal/verdict/availability.go", "c.ReadinessProbe == nil && c.StartupProbe == nil", "true", []string{verdictTests}},
	{"pods of others with the same labels have to be available", "pkg/component/internal/verdict/availability.go", "owner.Kind == kind && owner.Name == name", "(owner.Kind == kind || owner.Name == name || true)", []string{verdictTests}},
	{"the minReadySeconds of a workload do not count", "pkg/component/internal/verdict/availability.go", "own != nil {", "own != nil && false {", []string{verdictTests}},
	{"pods that may not be listed hold back a component", "pkg/component/internal/verdict/availability.go", "if apierrors.IsForbidden(err) {", "if false && apierrors.IsForbidden(err) {", []string{verdictTests}},
	{"a rule of its own for readiness does not count", "pkg/reconciler/desiredset.go", `d.Policies.ReadyWhen == "" && !byRule`, "(byRule || true)", []string{reconcilerTests}},
	{"a status says Ready of a revision that has just started", "pkg/component/apply.go", "status.IsReady() { // that", "false && status.IsReady() { // that", []string{componentTests}},
	{"the pods of a revision that was ready are read", "pkg/component/internal/revision/status.go", "current != nil && current.Result != v1alpha1.RevisionReady", "current != nil", []string{"./pkg/component/internal/revision"}},
	{"a container that was started late is a timeout", "pkg/component/internal/conclude/report.go", "f.Intervals.Timeout+f.Settling", "f.Intervals.Timeout", []string{componentTests}},
	{"a crash loop is waited for beyond the timeout", "pkg/component/internal/verdict/availability.go", "crashes || worst.Problem != pods.Starting", "crashes", []string{verdictTests}},
	{"a roll-out stops at a container that was started late", "pkg/component/internal/fleet/member.go", "timedOut && reason != vocabulary.ReasonProcessing", "timedOut && reason != \"\"", []string{fleetTests}},

	// Which process acts, and when.
	{"a process that may be deposed opens a record", "pkg/component/internal/record/keeper.go", "if err := k.Leading(); err != nil {", "if err := k.Leading(); false {", []string{componentTests}},
	{"a leader lock never gets old", "pkg/component/leaderlock.go", "age >= max(l.deadline-ahead, l.deadline/2)", "age < 0", []string{componentTests}},
	{"an object that was never claimed is deleted", "internal/session/phase.go", "case f.deleting && !f.claimed:", "case false:", []string{sessionTests}},
	{"a suspended component is applied", "internal/session/phase.go", "case f.suspended || f.policy == v1alpha1.ManagementPolicySkip:", "case false:", []string{sessionTests}},
}
