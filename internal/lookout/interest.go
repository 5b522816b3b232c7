// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import "k8s.io/apimachinery/pkg/util/resourceversion"

// interest is that somebody waits for a place.
type interest struct {
	seen      string
	vanishing bool
	// told is the resourceVersion that the waiter was woken for, if it was: it is not
	// woken again for the same. A watch that lags behind what the waiter reads would
	// otherwise wake it over and over.
	told *string
	// begun: the waiter was woken because a watch of many objects began.
	begun bool
}

// renew is the interest that a later pass has in the same place.
func (i *interest) renew(seen string, vanishing bool) {
	if seen != i.seen {
		// The object has changed since: the same version, or its end, is news again. A
		// storage that was restored may show a version of before.
		i.told = nil
	}
	i.seen, i.vanishing = seen, vanishing
}

// news tells whether what a watch shows of an object is worth a wake, and remembers
// that. Version is empty if the object is not there; progress is how far the watch has come.
func (i *interest) news(version, progress string) bool {
	switch {
	case version == i.seen:
		i.told = nil
		return false
	case version != "" && i.vanishing:
		return false
	case before(progress, i.seen):
		return false // the waiter is ahead of the watch
	case i.told != nil && *i.told == version:
		return false
	}
	i.told = &version
	return true
}

// restart forgets what the waiter saw and was woken for: it is about to see this version.
func (i *interest) restart(version string) { i.seen, i.told = version, nil }

// newer returns the newer one of two versions, either of which may be empty.
func newer(version, other string) string {
	if version == "" || before(version, other) {
		return other
	}
	return version
}

// before tells whether a version is provably older than another one.
func before(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}
