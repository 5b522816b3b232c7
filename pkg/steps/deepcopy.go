// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

// DeepCopy returns a copy that shares nothing with the condition.
func (in *Condition) DeepCopy() *Condition {
	if in == nil {
		return nil
	}
	out := new(Condition)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the condition.
func (in *Condition) DeepCopyInto(out *Condition) {
	*out = *in
	in.LastTransitionTime.DeepCopyInto(&out.LastTransitionTime)
	out.Lock = in.Lock.DeepCopy()
}

// DeepCopy returns a copy that shares nothing with the conditions. A copy of nil is nil.
func (in *Conditions) DeepCopy() Conditions {
	if in == nil {
		return nil
	}
	var out Conditions
	in.DeepCopyInto(&out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the conditions, whatever it held before.
func (in *Conditions) DeepCopyInto(out *Conditions) {
	if *in == nil {
		*out = nil
		return
	}
	list := make(Conditions, len(*in))
	for i := range *in {
		(*in)[i].DeepCopyInto(&list[i])
	}
	*out = list
}

// DeepCopy returns a copy that shares nothing with the record.
func (in *LockInfo) DeepCopy() *LockInfo {
	if in == nil {
		return nil
	}
	out := new(LockInfo)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyInto makes out a copy that shares nothing with the record.
func (in *LockInfo) DeepCopyInto(out *LockInfo) {
	*out = *in
	in.AcquiredAt.DeepCopyInto(&out.AcquiredAt)
	out.PreviousTransitionTime = in.PreviousTransitionTime.DeepCopy()
}
