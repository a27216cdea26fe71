package wake

import "vx/internal/rest"

// Quiet are the places that are empty as long as there is nothing to claim and nothing to settle, for an await that
// rests.
func (q *Queue) Quiet() []rest.Place {
	return []rest.Place{
		{Path: q.join(), Suffix: ".json"},
		{Path: q.join("forum"), Suffix: ".json"},
		{Path: q.join(".claimed")},
		{Path: q.join(".emitted")},
	}
}
