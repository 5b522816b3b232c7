// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/pkg/cluster"
)

const (
	// maxAsked bounds the SelfSubjectAccessReviews of one report. What is not asked
	// is not reported.
	maxAsked = 200
	// parallelism is how many of them are under way at once.
	parallelism = 8
	// deniedFor is how long a denial is remembered: for the reviews of one call. A right
	// may be granted at any time, and is not reported as missing after that.
	deniedFor = time.Second
	// trustedFor is how long an answer is believed after the server has said otherwise.
	trustedFor = 5 * time.Second
	// timeout bounds one report: a write waits for it.
	timeout = 10 * time.Second
	// maxKnown bounds the answers that are remembered. A user without rights in the
	// whole cluster has some for each namespace; when there are more, all are dropped.
	maxKnown = 20_000
)

// everywhere is the namespace that rules are requested for to learn what holds in the
// whole cluster. No namespace can have this name, so no RoleBinding can be in it.
const everywhere = "-"

// Reviewer knows what one user may do in one cluster. It is safe for concurrent use.
type Reviewer struct {
	objects *cluster.Objects
	now     func() time.Time

	mu      sync.Mutex
	answers map[Right]answer
}

type answer struct {
	allowed bool
	at      time.Time
}

// NewReviewer returns a Reviewer that asks as the user of the client objects.
func NewReviewer(objects *cluster.Objects, now func() time.Time) *Reviewer {
	return &Reviewer{objects: objects, now: now, answers: map[Right]answer{}}
}

// Missing returns the rights that the user lacks; the server is asked about those
// of which nothing is known. Refused says that the server has just forbidden
// something, so that what was allowed is asked again. Rights about which the
// server gives no answer are not reported; the error says why there are any.
func (r *Reviewer) Missing(ctx context.Context, needs Needs, refused bool) (Missing, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q := &review{Reviewer: r, refused: refused, needs: needs, listings: map[string]listing{}}
	missing, err := q.run(ctx)
	for i := range missing {
		// A creation has no name for the authorizer, so the rule cannot have one.
		if missing[i].Verb == "escalate" {
			missing[i].Name = ""
		}
	}
	// What drift and lists need is named together with what fails, and not alone.
	if !slices.ContainsFunc(missing, func(right Right) bool {
		required, known := needs.Rights[unnamed(right)]
		return required || !known
	}) {
		return nil, err
	}
	return Aggregate(missing), err
}

func unnamed(right Right) Right { right.Name = ""; return right }

// known returns the answer that is remembered. What holds in the whole cluster
// holds in each namespace.
func (r *Reviewer) known(right Right, refused bool) (allowed, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wide := right
	wide.Namespace = ""
	for _, key := range []Right{wide, right} {
		found, ok := r.answers[key]
		age := r.now().Sub(found.at)
		if !ok || refused && age > trustedFor || !found.allowed && (key != right || age > deniedFor) {
			continue
		}
		return found.allowed, true
	}
	return false, false
}

func (r *Reviewer) remember(right Right, allowed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) >= maxKnown {
		clear(r.answers)
	}
	r.answers[right] = answer{allowed, r.now()}
}

// review is one report.
type review struct {
	*Reviewer
	refused  bool
	needs    Needs
	listings map[string]listing // by namespace
	failed   error
}

// run returns the rights that are missing.
func (q *review) run(ctx context.Context) (missing []Right, err error) {
	var open []Right
	for right := range q.needs.Rights {
		switch allowed, known := q.known(right, q.refused); {
		case !known && !q.knownByName(right):
			open = append(open, right)
		case !known:
		case !allowed:
			missing = append(missing, right)
		}
	}
	var grants []Grant
	for _, grant := range q.needs.Grants {
		switch allowed, known := q.known(grant.Right, q.refused); {
		case !known:
			grants = append(grants, grant)
		case !allowed:
			missing = append(missing, grant.Right)
		}
	}
	open = q.unlisted(ctx, open)
	for _, grant := range grants {
		if !q.holds(ctx, grant) && !q.isListed(ctx, grant.Right) {
			open = append(open, grant.Right)
		}
	}
	if q.failed != nil {
		return missing, q.failed // every other question would wait for its own timeout
	}
	open = slices.DeleteFunc(open, func(right Right) bool {
		denied := q.isDenied(right)
		if denied {
			missing = append(missing, right)
		}
		return denied
	})
	slices.SortFunc(open, compare)
	open = slices.Compact(open)
	denied, err := q.ask(ctx, open[:min(len(open), maxAsked)])
	return append(missing, denied...), err
}

// knownByName reports whether it is known that the user holds the right for each
// object that it is needed for.
func (q *review) knownByName(right Right) bool {
	names := q.names(right)
	for _, right.Name = range names {
		if allowed, _ := q.known(right, q.refused); !allowed {
			return false
		}
	}
	return len(names) > 0
}

// names returns the objects that a right is needed for.
func (q *review) names(right Right) []string {
	right.Verb = ""
	return q.needs.Names[right]
}

// unlisted returns the rights that the server does not list. A right that the user
// holds for some objects only becomes one right for each object that it is needed for.
func (q *review) unlisted(ctx context.Context, rights []Right) (open []Right) {
	for _, right := range rights {
		switch {
		case q.isListed(ctx, right):
		case q.listing(ctx, right.Namespace).restricts(right):
			for _, right.Name = range q.names(right) {
				if !q.isListed(ctx, right) {
					open = append(open, right)
				}
			}
		default:
			open = append(open, right)
		}
	}
	return open
}

// isListed reports whether the server lists the right, and remembers that.
func (q *review) isListed(ctx context.Context, right Right) bool {
	for _, place := range placesOf(right.Namespace) {
		if q.listing(ctx, place).covers(right) {
			right.Namespace = place
			q.remember(right, true)
			return true
		}
	}
	return false
}

// isDenied reports whether the lists that were read are complete, so that a right that
// is in none of them is denied, and remembers that.
func (q *review) isDenied(right Right) bool {
	for _, place := range placesOf(right.Namespace) {
		if !q.listings[place].complete {
			return false
		}
	}
	q.remember(right, false)
	return true
}

// placesOf are the namespaces with the rules by which a right is looked up: first those
// that hold everywhere, so that one request serves all namespaces.
func placesOf(namespace string) []string {
	if namespace == "" {
		return []string{""}
	}
	return []string{"", namespace}
}

// holds reports whether the user holds all rules of a grant.
func (q *review) holds(ctx context.Context, grant Grant) bool {
	for _, rule := range grant.Rules {
		if !slices.ContainsFunc(placesOf(grant.Namespace), func(namespace string) bool { return q.listing(ctx, namespace).holds(rule) }) {
			return false
		}
	}
	return true
}

// listing returns what the server lists for a namespace; an empty one means everywhere.
func (q *review) listing(ctx context.Context, namespace string) listing {
	known, asked := q.listings[namespace]
	if asked || q.failed != nil {
		return known
	}
	var list authorizationv1.SelfSubjectRulesReview
	list.Spec.Namespace = namespace
	if namespace == "" {
		list.Spec.Namespace = everywhere
	}
	if err := q.post(ctx, "SelfSubjectRulesReview", "selfsubjectrulesreviews", &list); err != nil {
		q.failed = err
	}
	q.listings[namespace] = listing{
		resources: list.Status.ResourceRules, nonResources: list.Status.NonResourceRules,
		complete: q.failed == nil && !list.Status.Incomplete && list.Status.EvaluationError == "",
	}
	return q.listings[namespace]
}

// ask returns the rights that the server denies.
func (q *review) ask(ctx context.Context, rights []Right) ([]Right, error) {
	var mu sync.Mutex
	denied := map[Right]bool{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for _, right := range rights {
		group.Go(func() error {
			review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: right.Group, Resource: right.Resource, Namespace: right.Namespace, Verb: right.Verb, Name: right.Name,
				},
			}}
			if err := q.post(ctx, "SelfSubjectAccessReview", "selfsubjectaccessreviews", &review); err != nil {
				return err
			}
			q.remember(right, review.Status.Allowed)
			mu.Lock()
			defer mu.Unlock()
			if !review.Status.Allowed {
				denied[right] = true
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.SortedFunc(maps.Keys(denied), compare), err
}

// post sends a review and reads the answer into it.
func (q *review) post(ctx context.Context, kind, plural string, review any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return err
	}
	gv := authorizationv1.SchemeGroupVersion
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(gv.WithKind(kind))
	answered, err := q.objects.Review(ctx, cluster.Resource{GVR: gv.WithResource(plural), Kind: kind}, object)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(answered.Object, review)
}
