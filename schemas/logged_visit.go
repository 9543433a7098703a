package schemas

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// LoggedVisit has the new items of one visit of a sampled user, as the policy chose them, for training and evaluation. Topic
// visit-log, key: User. In a Served, the fields before ArmShare are empty: they are those of the Served.
type LoggedVisit struct {
	ID        string          `avro:"id" json:"id"` // of the Served
	User      UserID          `avro:"user" json:"user"`
	Time      Micros          `avro:"time" json:"time"`
	Feed      string          `avro:"feed" json:"feed"`
	Arm       string          `avro:"arm" json:"arm,omitempty"`   // as in Served
	ArmShare  float64         `avro:"armShare" json:"armShare"`   // probability of the arm; 1: the feed has no experiment
	UserShare float64         `avro:"userShare" json:"userShare"` // share of the users that are logged, above 0 to 1: a weight is its reciprocal
	Policy    Policy          `avro:"policy" json:"policy"`
	Features  []LoggedFeature `avro:"features" json:"features,omitempty"` // in the values of the items
	Outputs   []string        `avro:"outputs" json:"outputs,omitempty"`   // names of the model's outputs
	Degraded  []string        `avro:"degraded" json:"degraded,omitempty"` // as in Chunk
	Items     []LoggedItem    `avro:"items" json:"items"`                 // in the order of Served.Items
	// Cut is the number of the last items whose choices are omitted; see LimitChoices.
	Cut int32 `avro:"cut" json:"cut,omitempty"`
}

// Policy says how the places of a visit were filled.
type Policy string

// The policies.
const (
	PolicyDeterministic Policy = "deterministic" // each propensity is 1
	PolicyExploration   Policy = "exploration"   // deterministic except for explored items, whose propensity is estimated
	PolicyRandomized    Policy = "randomized"    // each place is drawn from its choices
)

// LoggedFeature is a feature of the model.
type LoggedFeature struct {
	Name  string `avro:"name" json:"name"`
	Width int32  `avro:"width" json:"width"` // number of values: 1
}

// LoggedItem is one item of a logged visit.
type LoggedItem struct {
	Pin       PinID              `avro:"pin" json:"pin"`
	Source    Source             `avro:"source" json:"source"`
	Pool      Source             `avro:"pool" json:"pool,omitempty"` // as in ServedItem
	Author    UserID             `avro:"author" json:"author"`
	RankScore RankScore          `avro:"score" json:"score"`           // of an explored item: its draw
	Parts     map[string]float64 `avro:"parts" json:"parts,omitempty"` // summands of the score; empty: the item is explored
	// Values are the numbers that the model received for the pin, in the order of LoggedVisit.Features. They and Outputs are
	// empty if the model did not receive the pin, or did not answer in time.
	Values  []LoggedNumber `avro:"values" json:"values,omitempty"`
	Outputs []LoggedNumber `avro:"outputs" json:"outputs,omitempty"` // without weights; NaN: the model returned none for the pin
	// Propensity is the probability with which the policy puts the pin of the source at this place, given the places before.
	// 0: unknown.
	Propensity float64  `avro:"propensity" json:"propensity"`
	Choices    []Choice `avro:"choices" json:"choices,omitempty"` // if the policy is randomized
	Choice     int32    `avro:"choice" json:"choice"`             // index of the item in Choices; -1: no choices
}

// Choice is a candidate for a place of a randomized policy.
type Choice struct {
	Source            Source         `avro:"source" json:"source"`
	SourceProbability float64        `avro:"sourceProbability" json:"sourceProbability"`
	Pin               PinID          `avro:"pin" json:"pin"`
	Probability       float64        `avro:"probability" json:"probability"` // of the source and the candidate
	RankScore         RankScore      `avro:"score" json:"score"`             // of a candidate of Explore: its draw
	Outputs           []LoggedNumber `avro:"outputs" json:"outputs,omitempty"`
}

// LimitChoices omits the choices of the last items, and counts these items in Cut, so that the encoded choices have at most maxBytes.
func (v *LoggedVisit) LimitChoices(maxBytes int) {
	for i := range v.Items {
		it := &v.Items[i]
		for j := range it.Choices {
			maxBytes -= it.Choices[j].maxEncodedBytes()
		}
		if maxBytes < 0 { // and then for all later items
			it.Choices, it.Choice = nil, -1
			v.Cut++
		}
	}
}

// maxEncodedBytes returns an upper bound of the bytes of the encoded choice. Each length takes at most 5 bytes.
func (c *Choice) maxEncodedBytes() int { return 48 + len(c.Source) + len(c.Pin) + 8*len(c.Outputs) }

// LoggedNumber is a number that may be NaN or infinite. In JSON, such a number is a string, as strconv.FormatFloat formats it.
type LoggedNumber float64

// MarshalJSON implements json.Marshaler.
func (n LoggedNumber) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.Marshal(strconv.FormatFloat(f, 'g', -1, 64))
	}
	return json.Marshal(f)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *LoggedNumber) UnmarshalJSON(text []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	*n = LoggedNumber(f)
	return err
}
