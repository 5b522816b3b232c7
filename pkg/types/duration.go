// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a duration in a spec, such as "10m" or "1h30m". It can be decoded from
// anything: what is no duration is kept as it is and reported by Mistake. So one
// object that was stored with a bad value does not stop the watch of all objects of
// its type, as it does with metav1.Duration.
//
// +kubebuilder:validation:Type=string
type Duration struct {
	// Duration is the value; it is zero if there is a mistake.
	Duration time.Duration `json:"-"`

	mistake string `json:"-"` // the serialised form of what is no duration
}

// UnmarshalJSON never fails.
func (d *Duration) UnmarshalJSON(serialised []byte) error {
	*d = Duration{}
	var text *string
	if err := json.Unmarshal(serialised, &text); err == nil && text == nil {
		return nil
	} else if err == nil {
		if d.Duration, err = time.ParseDuration(*text); err == nil {
			return nil
		}
	}
	*d = Duration{mistake: string(serialised)}
	return nil
}

// MarshalJSON returns what is no duration as it came.
func (d Duration) MarshalJSON() ([]byte, error) {
	if d.mistake != "" {
		return []byte(d.mistake), nil
	}
	return json.Marshal(d.Duration.String())
}

// Mistake says what is wrong; nil means that the duration is one.
func (d *Duration) Mistake() error {
	if d == nil || d.mistake == "" {
		return nil
	}
	const shown = 40
	text := []rune(d.mistake)
	if len(text) > shown {
		text = append(text[:shown], '…')
	}
	return fmt.Errorf("%s is no duration; write it like \"90s\", \"10m\" or \"1h30m\"", string(text))
}
