package schemas

// Rebuild requests a rebuild of a user's pools: pools deletes the candidates that followees delivered, and requests a
// backfill from every followee. Topic rebuilds, key: User. Repeating a rebuild has no further effect.
type Rebuild struct {
	User   UserID `avro:"user" json:"user"`
	Source Source `avro:"source" json:"source"` // Following, FromInterest, or "" for both
	Keep   bool   `avro:"keep" json:"keep"`     // no candidates are deleted; backfills are requested nevertheless
}

// CheckRebuildable returns a *BadRecordError for a source whose candidates followees do not deliver.
func (s Source) CheckRebuildable() error {
	switch s {
	case "", Following, FromInterest:
		return nil
	}
	return badf("source %s: want %s or %s, whose candidates followees deliver", quote(string(s)), Following, FromInterest)
}
