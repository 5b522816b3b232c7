// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package external is the lifecycle.Handler for resources behind an API of another
// kind: a bucket, a database, a record in a DNS zone.
//
// A [Client] knows how to observe, create, update and delete one resource. The [Handler] that [New]
// returns decides which of them a reconcile calls, and keeps a [Record] in the object's status, so
// that a crash, a lost answer or a second replica neither leaks a resource nor creates it twice:
//
//	record     observed                    in life                  in deletion
//	none       (not looked for)              draw a token, Create     done
//	Creating   not there, may come yet     Create with that token   look again
//	Creating   not there, cannot come      Create with that token   done
//	Created    not there, may come yet     look again               look again
//	Created    not there, cannot come      draw a token, Create     done
//	any        there, the API is at work   look again               Delete
//	any        there, not up to date       Update                   Delete
//	any        there, up to date           done                     Delete
//
// # The token
//
// Before every Create, a token and the time are on record, durable by a Commit. Create
// gives the token to the API, as an idempotency key, a tag or the name. The process that
// starts after a crash looks for the token, and creates with that token only; a new one is
// drawn only when the resource was there and is certainly gone. If the API makes
// one resource of several requests with one token, that is all. If it does not, set
// [Options].NotIdempotent: then the next attempt waits as long as the outcome of the last one
// is unknown.
//
// # Absence
//
// A request that was sent can still take effect if its answer got lost, and so can one of a replica
// that has lost its lease. So an observation that there is nothing counts only when no Create can
// take effect any more: [Options].Timeout after it was recorded, because none is sent later, plus
// [Options].GracePeriod. If the only Create there was has been answered, there is no wait. A
// deletion that has to wait reports that in Ready.
//
// # Requirements
//
// Find a resource by its token, at once or, with [Options].EventuallyConsistent, within
// GracePeriod; and delete only the recorded resource, so that a late Delete cannot hit a resource
// of another client. An API that can do neither cannot be operated without leaks.
package external
