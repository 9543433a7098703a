// Package training has the Parquet files of `smartfeed training export`: one row per served item of the served log, with what
// the generator knew, what it could have chosen, and what the user did. The export writes them, `smartfeed evaluate` and
// programs that train models read them.
//
// A folder has one folder per day, day=YYYY-MM-DD, with files *.parquet. All rows of a user are in files of one partition.
// Columns whose names depend on the export are listed in the metadata of each file; see Layout.
package training

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Item has the columns that every file has.
type Item struct {
	Visit     string    `parquet:"visit"` // id
	User      string    `parquet:"user"`
	Time      time.Time `parquet:"time,timestamp(microsecond)"` // of the visit
	Feed      string    `parquet:"feed"`
	Arm       string    `parquet:"arm"`        // experiment arm; "": none
	ArmShare  float64   `parquet:"arm_share"`  // probability of the arm; 1: no experiment
	UserShare float64   `parquet:"user_share"` // sampling rate of users
	Policy    string    `parquet:"policy"`     // Deterministic or Randomized
	Position  int32     `parquet:"position"`   // 0 is the first new item of the visit
	Pin       string    `parquet:"pin"`
	Source    string    `parquet:"source"`
	Pool      string    `parquet:"pool"`
	Author    string    `parquet:"author"`
	Score     float64   `parquet:"score"` // of the generator
	// Propensity is the probability with which the policy put this item at this place, given the places before. It is 1 if
	// the policy is deterministic, and nil if it is unknown.
	Propensity *float64 `parquet:"propensity,optional"`
	Choices    []Choice `parquet:"choices,list"` // what could have been at this place, including the item; empty: deterministic
	Choice     int32    `parquet:"choice"`       // index of the item in Choices
}

// The policies of a visit.
const (
	Deterministic = "deterministic"
	Randomized    = "randomized"
)

// Choice is a candidate for a place.
type Choice struct {
	Source            string    `parquet:"source"`
	SourceProbability float64   `parquet:"source_probability"`
	Pin               string    `parquet:"pin"`
	Probability       float64   `parquet:"probability"` // of the source and the candidate
	Score             float64   `parquet:"score"`
	Outputs           []float64 `parquet:"outputs,list"` // of the model, in the order of Layout.Outputs; empty: none
}

// Row is an item with the columns of a layout.
type Row struct {
	Item
	Features [][]float64 // in the order of Layout.Features; nil: the model had none. Rows that Read returns have no features
	Outputs  []*float64  // of the model, in the order of Layout.Outputs; nil: none
	Labels   []Label     // in the order of Layout.Verbs
}

// Label tells whether the user acted on the item within the window of the label's verb.
type Label struct {
	Acted *bool    // nil: censored, because the log ends before the window
	After *float64 // seconds from the visit to the first action; nil: none
}

// Layout lists the columns that depend on the export.
type Layout struct {
	Features []Feature         // columns feature_NAME
	Outputs  []string          // columns output_NAME
	Labels   map[string]string // columns label_VERB and label_VERB_after: the window by verb, as time.Duration prints it
	Topic    string            // id of the topic that the rows are of
}

// Feature is an input of the model.
type Feature struct {
	Name  string `json:"name"`
	Width int    `json:"width"` // number of values; 1: the column is a number, otherwise a list
}

// Verbs returns the verbs of the labels in the order of the columns.
func (l Layout) Verbs() []string { return slices.Sorted(maps.Keys(l.Labels)) }

// metadata returns the parts of the layout by their keys in the metadata of a file.
func (l *Layout) metadata() map[string]any {
	return map[string]any{"smartfeed.features": &l.Features, "smartfeed.outputs": &l.Outputs, "smartfeed.labels": &l.Labels, "smartfeed.topic": &l.Topic}
}

// layoutOf reads the layout from the metadata of a file.
func layoutOf(lookup func(key string) (string, bool)) (l Layout, err error) {
	for key, part := range l.metadata() {
		text, _ := lookup(key)
		if err := json.Unmarshal([]byte(text), part); err != nil {
			return l, fmt.Errorf("metadata %s: %q: want what smartfeed training export writes: %w", key, text, err)
		}
	}
	return l, nil
}

// rowType returns the type of a file's rows: a struct with the fields of Item and one per column of the layout.
func (l Layout) rowType() reflect.Type {
	fields := slices.Clone(reflect.VisibleFields(reflect.TypeFor[Item]()))
	add := func(t reflect.Type, column, options string) {
		name := strings.ReplaceAll(column, ",", "_") // a comma ends a name in a tag
		tag := reflect.StructTag("parquet:" + strconv.Quote(name+",optional"+options))
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("Column", len(fields)), Type: t, Tag: tag})
	}
	number := reflect.TypeFor[*float64]()
	for _, f := range l.Features {
		if f.Width == 1 {
			add(number, "feature_"+f.Name, "")
		} else {
			add(reflect.TypeFor[[]float64](), "feature_"+f.Name, ",list")
		}
	}
	for _, output := range l.Outputs {
		add(number, "output_"+output, "")
	}
	for _, verb := range l.Verbs() {
		add(reflect.TypeFor[*bool](), "label_"+verb, "")
		add(number, "label_"+verb+"_after", "")
	}
	return reflect.StructOf(fields)
}

// values returns the row's values in the order of the fields of rowType. All but the features can be set.
func (l Layout) values(r *Row) (list []reflect.Value) {
	item := reflect.ValueOf(&r.Item).Elem()
	for i := range item.NumField() {
		list = append(list, item.Field(i))
	}
	for i, f := range l.Features {
		switch {
		case f.Width != 1:
			list = append(list, reflect.ValueOf(r.Features[i]))
		case r.Features[i] == nil:
			list = append(list, reflect.ValueOf((*float64)(nil)))
		default:
			list = append(list, reflect.ValueOf(&r.Features[i][0]))
		}
	}
	for i := range r.Outputs {
		list = append(list, reflect.ValueOf(&r.Outputs[i]).Elem())
	}
	for i := range r.Labels {
		list = append(list, reflect.ValueOf(&r.Labels[i].Acted).Elem(), reflect.ValueOf(&r.Labels[i].After).Elem())
	}
	return list
}
