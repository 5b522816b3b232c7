// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

// DeepCopy returns a copy that shares nothing with the condition.
func (c *Condition) DeepCopy() *Condition {
	if c == nil {
		return nil
	}
	out := new(Condition)
	c.DeepCopyInto(out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the condition.
func (c *Condition) DeepCopyInto(out *Condition) {
	*out = *c
	c.LastTransitionTime.DeepCopyInto(&out.LastTransitionTime)
	out.Lock = c.Lock.DeepCopy()
}

// DeepCopy returns a copy that shares nothing with the conditions. A copy of nil is nil.
func (c *Conditions) DeepCopy() Conditions {
	if c == nil {
		return nil
	}
	var out Conditions
	c.DeepCopyInto(&out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the conditions, whatever it held before.
func (c *Conditions) DeepCopyInto(out *Conditions) {
	if *c == nil {
		*out = nil
		return
	}
	list := make(Conditions, len(*c))
	for i := range *c {
		(*c)[i].DeepCopyInto(&list[i])
	}
	*out = list
}

// DeepCopy returns a copy that shares nothing with the record.
func (c *LockInfo) DeepCopy() *LockInfo {
	if c == nil {
		return nil
	}
	out := new(LockInfo)
	c.DeepCopyInto(out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the record.
func (c *LockInfo) DeepCopyInto(out *LockInfo) {
	*out = *c
	c.AcquiredAt.DeepCopyInto(&out.AcquiredAt)
	out.PreviousTransitionTime = c.PreviousTransitionTime.DeepCopy()
}
