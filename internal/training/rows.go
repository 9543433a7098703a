// Package training has the Parquet files of `smartfeed training export`: one row per served item of the served log, with what
// the generator knew, what it could have chosen, and what the user did. The export writes them, `smartfeed evaluate` and
// programs that train models read them.
//
// A folder has one folder per day, day=YYYY-MM-DD, with files *.parquet. All rows of a user are in files of one partition.
// Columns whose names depend on the export are listed in the metadata of each file; see Layout.
package training

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Item has the columns that every file has.
type Item struct {
	Visit     string         `parquet:"visit"` // id
	User      string         `parquet:"user"`
	Time      time.Time      `parquet:"time,timestamp(microsecond)"` // of the visit
	Feed      string         `parquet:"feed"`
	Arm       string         `parquet:"arm"`        // experiment arm; "": none
	ArmShare  float64        `parquet:"arm_share"`  // probability of the arm; 1: no experiment
	UserShare float64        `parquet:"user_share"` // sampling rate of users
	Policy    schemas.Policy `parquet:"policy"`
	Position  int32          `parquet:"position"` // 0 is the first new item of the visit
	Pin       string         `parquet:"pin"`
	Source    string         `parquet:"source"`
	Pool      string         `parquet:"pool"`
	Author    string         `parquet:"author"`
	Score     float64        `parquet:"score"` // of the generator
	// Propensity is the probability with which the policy put this item at this place, given the places before. It is 1 if
	// the policy is deterministic, and 0, in files null, if it is unknown.
	Propensity float64  `parquet:"propensity,optional"`
	Choices    []Choice `parquet:"choices,list"` // what could have been at this place, including the item; empty: deterministic
	Choice     int32    `parquet:"choice"`       // index of the item in Choices
}

// Choice is a candidate for a place.
type Choice struct {
	Source            string             `parquet:"source"`
	SourceProbability float64            `parquet:"source_probability"`
	Pin               string             `parquet:"pin"`
	Probability       float64            `parquet:"probability"` // of the source and the candidate
	Score             float64            `parquet:"score"`
	Outputs           map[string]float64 `parquet:"outputs"` // of the model, by name; empty: none
}

// Row is an item as it is read.
type Row struct {
	Item
	Acted map[string]bool // by the verb of a label: whether the user acted on the item within the label's window
}

// Columns has the numbers of an item in the columns of a layout, by their names. A missing number, and NaN, are
// null. A flag is set unless it is missing or 0.
type Columns map[string]float64

// The names of the columns of a layout. NAME is that of a feature or of an output, VERB is that of a label.
const (
	FeaturePrefix = "feature_" // feature_NAME
	OutputPrefix  = "output_"  // output_NAME
	LabelPrefix   = "label_"   // label_VERB: whether the user acted with the verb
	AfterSuffix   = "_after"   // label_VERB_after: seconds from the visit to the first action
)

// Layout lists the columns that depend on the export.
type Layout struct {
	Features []string          // that the model receives, in order
	Outputs  []string          // of the model
	Labels   map[string]string // the window by verb, as time.Duration prints it
	Topic    string            // id of the topic that the rows are of
}

// Verbs returns the verbs of the labels in the order of the columns.
func (l Layout) Verbs() []string { return slices.Sorted(maps.Keys(l.Labels)) }

// metadata returns the parts of the layout by their keys in the metadata of a file.
func (l *Layout) metadata() map[string]any {
	return map[string]any{"smartfeed.features": &l.Features, "smartfeed.outputs": &l.Outputs, "smartfeed.labels": &l.Labels, "smartfeed.topic": &l.Topic}
}

// column is a column of a layout: a *float64 or a bool.
type column struct {
	name string
	kind reflect.Type
}

func (l Layout) columns() (list []column) {
	number := reflect.TypeFor[*float64]()
	for _, feature := range l.Features {
		list = append(list, column{FeaturePrefix + feature, number})
	}
	for _, output := range l.Outputs {
		list = append(list, column{OutputPrefix + output, number})
	}
	for _, verb := range l.Verbs() {
		list = append(list, column{LabelPrefix + verb, reflect.TypeFor[bool]()}, column{LabelPrefix + verb + AfterSuffix, number})
	}
	return list
}

// rowType returns the type of a file's rows: a struct with an Item, and a field for each column.
func rowType(columns []column) reflect.Type {
	fields := []reflect.StructField{{Name: "Item", Type: reflect.TypeFor[Item](), Anonymous: true}}
	for _, c := range columns {
		name := strings.ReplaceAll(c.name, ",", "_") // a comma ends a name in a tag
		tag := reflect.StructTag("parquet:" + strconv.Quote(name))
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("Column", len(fields)), Type: c.kind, Tag: tag})
	}
	return reflect.StructOf(fields)
}
