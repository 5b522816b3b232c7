// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package changes calls a function for every change of the objects of a kind: Created,
// Updated, Deleted or Resynced. It is for programs that report objects of any kind to another
// system and need no controller of their own for it.
//
// There are two interfaces, which differ in taste. A [TypedReconciler] has one function, which gets
// the action and may ask to be called again after some time. A [Watcher] has a function for each
// action, which succeeds or fails. Either is given to [NewController], which runs it on a manager
// of controller-runtime.
//
// # Plain and opinionated
//
// A plain reconciler writes nothing. It gets the changes that the process observes while it runs:
// after a restart every object is Created again, a deletion in the meantime is not noticed, and
// each write to an object, of its status, too, is a change.
//
// [OpinionatedReconciler] and [OpinionatedWatcher] keep a finalizer of their own on the
// objects. It is there before the first call and goes after Deleted was handled:
//
//   - Deleted is handled at least once for each object for which anything was called,
//     before the object is removed, whether or not a process was running when it was deleted.
//   - Created comes at least once for each object, until it succeeds; a second finalizer records
//     that. After a restart, handled objects are Resynced.
//   - Changes of status or metadata alone are no changes. The content counts, not
//     metadata.generation, which ConfigMaps and many other kinds lack.
//   - There are two writes when an object is created, one when it is deleted, and none
//     in between.
//
// If another client removes the finalizer and the object is gone, Deleted comes while the
// process runs. If the selector of the cache no longer matches an object, that is a deletion: it
// is Deleted, and the finalizers are removed. If that happens while no process is running, the
// finalizer stays until the selector matches again.
//
// Nothing is delivered exactly once, because no crash can be distinguished from a crash a moment
// later; so all functions must be idempotent. Two processes at once, without
// leader election, call twice. If one of them is still in a call when the other removes the
// finalizers, it calls Deleted itself afterwards.
//
// # Which action
//
//	state of the object               plain           opinionated
//	not handled by this process       Created         Created with the second finalizer, else Resynced
//	changed since it was handled      Updated         Updated
//	a resync is due                   Resynced        Resynced
//	being deleted                     as any change   Deleted
//	gone                              Deleted         Deleted, if it was not yet
//
// The state matters, not the events: a function always gets the newest state that the cache has, in
// a retry, too; several changes in a row may be one call; and the old object of an update is the
// last that was handled, however many there were in between. Calls for one object never overlap. An
// object that was deleted and created anew is Deleted before it is Created.
//
// # Hints
//
//   - A write to the content of the object itself is another change. Write to its status.
//   - Return early if there is nothing to do, and record finished work in the status: then a
//     restart loses nothing, and users see it. Retries and State are in memory.
//   - Read other objects through the client of the manager, which is a cache.
//   - A value that can be computed from the object alone belongs in an admission webhook.
//   - Watch one version of a kind, usually the latest: each change is reported in the
//     version that is watched, whichever version it was written in. A second version in the
//     same manager is refused.
//   - Before an operator is uninstalled for good its finalizers have to be removed: delete the
//     objects first, or remove the finalizers by hand.
//
// # Errors
//
// A [RetryPolicy] decides whether and when a failed call is made again:
// [ExponentialBackoffRetryPolicy], [FixedRetryPolicy], [NoRetryPolicy] or a function of one's own.
// The default goes on for ever. The queue's delays, its metrics and its log see the error. A panic
// is an error. An object that is not retried any more is reported in an event with reason GaveUp,
// and rests until it changes, is resynced or the process is restarted.
//
// # Memory
//
// All objects of the kind are in memory, in the cache; and once more the last state that was
// handled, if it is another one. Options.CacheOptions restricts the cache to namespaces and
// selectors and strips fields that are not needed; *metav1.PartialObjectMetadata as the kind keeps
// metadata only.
//
// # Differences on purpose
//
// Compared with the reconcilers and watchers of the Grafana app SDK:
//
//   - Objects are the objects of controller-runtime, and a reconciler runs on its queue, with its
//     leader election, metrics and panics handled.
//   - RequeueAfter is a time.Duration.
//   - A watcher is a struct of functions, which may be the methods of another type. It is
//     a Reconciler, so there is one kind of controller.
//   - Old is there in a reconciler's update, too, and is the last state handled, not the last
//     one observed.
//   - An opinionated reconciler adds its finalizers to an object before the first call, filters
//     as a watcher does, and calls nothing for objects that never had them.
//   - Retries get the newest state, are one after the other with events, go on for ever by
//     default, and are counted as errors each. An error and RequeueAfter together are an
//     error that is retried after that time. So there is no policy for removing retries
//     from the queue.
//   - State advances with every attempt and ends with a change of the content.
//   - The cache is the manager's or a cache with any options of controller-runtime; instead of an
//     informer of one's own there is Options.NewCache. Instead of several reconcilers for a kind
//     there are several controllers.
//   - Admission, conversion and routes belong to controller-runtime's webhooks.
package changes
