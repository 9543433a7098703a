package pools

import (
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// This file has all differences of a generation that is being built, which emits nothing (rows.Tx.Silent). It processes the
// requests and the answers of the active generation, and its own next steps do not arrive.

// maxClearedRows returns the maximum number of candidates that one step of a rebuild deletes. A silent generation deletes as many
// as a record may: its next records may be the answers to the active generation.
func maxClearedRows(tx *rows.Tx) int {
	if tx.Silent() {
		return 50_000
	}
	return 5000
}

// sendsNotifications reports whether the generation sends notifications. A silent one could wait forever for the answers.
func sendsNotifications(tx *rows.Tx) bool { return !tx.Silent() }

// leftByErasure returns a function that selects the rows that a step of an erasure leaves. Until the last step, a silent
// generation leaves the rows with followees: when it becomes active, it must notify those that the other generation lacks.
func leftByErasure(tx *rows.Tx, step schemas.ErasureStep) func(row []byte) bool {
	if tx.Silent() && step != schemas.EraseRest {
		return namesFollowee
	}
	return keepNone
}

// continuesByTimer reports whether a timer continues a step of an erasure.
func continuesByTimer(tx *rows.Tx, step schemas.ErasureStep) bool {
	return tx.Silent() && step == schemas.EraseRest
}
