package featurelog

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// Setup is the part of the configuration that Verify needs.
type Setup struct {
	topics.Setup
	Definitions []feature.Definition
}

// Verify compares the log with the actions: it computes the logged features again. dir has the files of the log; "": the
// log is read from its topic.
func Verify(ctx context.Context, s Setup, dir string) ([]Drift, error) {
	streams, err := s.Streams(ctx)
	if err != nil {
		return nil, err
	}
	log, err := topics.NewLog(s.Kafka)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	records, err := loggedRecords(ctx, log, streams, dir)
	if err != nil {
		return nil, err
	}
	v := NewVerifier(s.Definitions)
	for _, rec := range records {
		v.Expect(rec)
	}
	if err := v.fill(ctx, log, streams); err != nil {
		return nil, err
	}
	for _, rec := range records {
		v.Compare(rec)
	}
	return v.Report(), nil
}

func loggedRecords(ctx context.Context, log *topics.Log, s *topics.Streams, dir string) ([]*schemas.LoggedFeatures, error) {
	var records []*schemas.LoggedFeatures
	if dir != "" {
		err := ReadFiles(dir, func(rec *schemas.FiledFeatures) error {
			records = append(records, &rec.LoggedFeatures)
			return nil
		})
		return records, err
	}
	_, err := each(ctx, log, s.FeatureLog, func(rec *schemas.LoggedFeatures, _ *kgo.Record) { records = append(records, rec) })
	return records, err
}

// CheckDrifts returns an error if late actions do not explain the difference of a value.
func CheckDrifts(drifts []Drift) error {
	bad, compared := 0, 0
	for _, d := range drifts {
		bad, compared = bad+d.Bad(), compared+d.Compared
	}
	if bad > 0 {
		return fmt.Errorf("verify features: %d of %d values differ", bad, compared)
	}
	return nil
}
