// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// idempotencyKey is the key of an attempt from the condition: that of the attempt before if
// it ended in Error, because nobody knows what came of it.
func idempotencyKey(uid types.UID, condition Condition) string {
	if condition.Status == ConditionError && condition.AttemptKey != "" {
		return condition.AttemptKey
	}
	text := fmt.Sprintf("%s\n%s\n%s\n%d", uid, condition.Type, condition.Status, condition.LastTransitionTime.Unix())
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
