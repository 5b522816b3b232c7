// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestALeaseIsHeldAsLongAsItWasRenewedLately(t *testing.T) {
	now := time.Unix(10_000, 0)
	renewed := func(ago time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(-ago))) }
	for name, test := range map[string]struct {
		spec coordinationv1.LeaseSpec
		held bool
	}{
		"just renewed":               {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: renewed(time.Second)}, true},
		"by a clock that is ahead":   {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: renewed(-time.Minute)}, true},
		"expired, as clocks may say": {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: renewed(59 * time.Second), LeaseDurationSeconds: new(int32(15))}, true},
		"expired":                    {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: renewed(time.Minute), LeaseDurationSeconds: new(int32(15))}, false},
		"a long one":                 {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: renewed(4 * time.Minute), LeaseDurationSeconds: new(int32(137))}, true},
		"a long one that expired":    {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: renewed(5 * time.Minute), LeaseDurationSeconds: new(int32(137))}, false},
		"given up":                   {coordinationv1.LeaseSpec{HolderIdentity: new(""), RenewTime: renewed(time.Second)}, false},
		"without a holder":           {coordinationv1.LeaseSpec{RenewTime: renewed(time.Second)}, false},
		"never renewed":              {coordinationv1.LeaseSpec{HolderIdentity: new("a")}, false},
	} {
		if got := Of(&coordinationv1.Lease{Spec: test.spec}, now); got.Held != test.held {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
