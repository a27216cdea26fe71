package claude

import (
	"time"

	"vx/internal/receipt"
)

// FindReceipt looks for token in the transcript at path behind size, and in transcripts of the same directory that were
// written after since: after /clear the client goes on in a new one. See receipt.Find.
func FindReceipt(path string, size int64, since time.Time, token string) (receipt.Receipt, error) {
	return receipt.Find(path, size, since, token, func() receipt.Judge { return new(row) })
}

// FindTyped is FindReceipt for a text that was typed into the client: its rows are those of a person's prompt.
func FindTyped(path string, size int64, since time.Time, token string) (receipt.Receipt, error) {
	return receipt.Find(path, size, since, token, func() receipt.Judge { return &row{typed: true} })
}
