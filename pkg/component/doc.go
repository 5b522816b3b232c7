// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package component is what the author of an operator works with: a custom
// resource type, a generator, and a [Reconciler] that keeps the generated objects
// in the cluster as long as the custom resource is there.
//
// A [Component] is the pointer to an API type. Its spec becomes the parameters
// of the generator, and its status embeds [Status]. A component, or its
// spec, configures more, such as another namespace or a shorter requeue interval, by
// implementing the ...Configuration interfaces; the ...Spec
// types do that for every spec that embeds them.
//
//	reconciler := component.NewReconciler[*Shop]("shop.example.com", generator, component.ReconcilerOptions{})
//	if err := reconciler.SetupWithManager(mgr); err != nil { ... }
//
// # The index in groups
//
//   - The reconciler: [NewReconciler], [Reconciler], [Component], [Status].
//   - Options: [ReconcilerOptions], with [ObjectOptions], [RevisionOptions], [Rollout], [UserOptions],
//     [ControllerOptions] and [OperatorOptions] in it; [NewLeaderLock] and [OperatorNamespace] for a main function.
//   - Parts of a spec, to be embedded: [PlacementSpec], [ClientSpec], [ImpersonationSpec], [SuspensionSpec],
//     [RequeueSpec], [RetrySpec], [TimeoutSpec], [PolicySpec], [DriftSpec], [TypeSpec], [ReapplySpec], [RollbackSpec],
//     [PatchesSpec]. [Parameters] and [MergedParameters] make the parameters of the generator from a spec.
//   - Interfaces that a component or its spec may implement in place of them: [PlacementConfiguration] and
//     the others by the name of ...Configuration, one for each part.
//   - References to ConfigMaps and Secrets in a spec: [ConfigMapReference], [ConfigMapKeyReference], [SecretReference],
//     [SecretKeyReference], [Reference] for types of one's own.
//   - Hooks: [HookFunc], the five With...Hook methods, [PreviewSafe], [ClientFromContext].
//   - Plans: [PlanRequest], [Plan], Reconciler.Plan, Reconciler.PlanAll.
//
// # One reconcile
//
// A reconcile follows this course:
//
//	finalizer                    session: durable before anything else happens
//	options and interfaces       resolved to valid settings; mistakes stall the component
//	post-read hooks
//	digest of the component      a changed digest is a new revision and restarts the timeout
//	rollback, approval           an earlier revision is applied, or the new one waits
//	pre-reconcile hooks
//	generator                    renders the dependent objects
//	pkg/reconciler               plans, makes the inventory durable in the status, writes
//	post-reconcile hooks         when everything is applied and ready
//	status                       session: one write, if anything changed; what it says is the verdict,
//	                             one pure function from facts to state, conditions, result
//
// In deletion hooks run before and after the dependents are deleted. Whatever
// blocks the deletion (instances of a type that the component brings, which are not
// its own; finalizers of others on the component) is found before anything is touched.
//
// # Code that is not ours
//
// Hooks and generators may panic, change what they should not, or never come
// back. They get copies and deadlines, and what they do wrong is an error in the
// status of the one component.
//
// # What the status says
//
// State, condition Ready and either Reconciling or Stalled come from one verdict
// and cannot disagree. Messages name the objects that are waited for, and for
// workloads what their pods say. No state is final: all components but the
// suspended are requeued after the requeue interval at the latest.
//
// # What makes a component reconcile
//
// Its own changes, changes of its dependents, and Trigger; the requeue interval is
// only a fallback. A reconcile for nothing but dependents uses what was rendered last, for
// no longer than the requeue interval, and runs no hooks but those after the
// reconciliation, once, if the component becomes ready.
package component
