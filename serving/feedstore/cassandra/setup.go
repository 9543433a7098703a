package cassandra

import (
	"context"
	"errors"
	"strings"
)

// Setup is the configuration of the clusters.
type Setup struct {
	Config           Config
	Primary, Standby Cluster // without hosts: none
}

// ErrNoCluster is returned when no cluster is configured.
var ErrNoCluster = errors.New("feed_store.cassandra.primary.hosts is empty: the embedded feed store needs neither apply nor verify")

// Report is the result of Setup.Apply or Setup.Verify for one cluster.
type Report struct {
	Cluster  string   `json:"cluster"` // primary or standby
	OK       bool     `json:"ok"`      // the cluster matches the configuration
	Done     []string `json:"done"`    // changes
	Problems []string `json:"problems"`
}

// Apply creates keyspace and tables on each cluster, and sets options that differ; see the function Apply. It continues
// with the standby if the primary fails.
func (s Setup) Apply(ctx context.Context) ([]Report, error) {
	return s.each(ctx, func(at Cluster) ([]string, error) { return Apply(ctx, s.Config, at) })
}

// Verify compares keyspace and tables of each cluster with the configuration; see the function Verify.
func (s Setup) Verify(ctx context.Context) ([]Report, error) {
	return s.each(ctx, func(at Cluster) ([]string, error) { return nil, Verify(ctx, s.Config, at) })
}

func (s Setup) each(ctx context.Context, do func(Cluster) ([]string, error)) ([]Report, error) {
	if len(s.Primary.Hosts) == 0 {
		return nil, ErrNoCluster
	}
	var reports []Report
	var problems []error
	for _, c := range []struct {
		name string
		at   Cluster
	}{{"primary", s.Primary}, {"standby", s.Standby}} {
		if len(c.at.Hosts) == 0 || errors.Is(ctx.Err(), context.Canceled) {
			continue
		}
		done, err := do(c.at)
		reports = append(reports, newReport(c.name, done, err))
		problems = append(problems, withName(c.name, err))
	}
	return reports, errors.Join(problems...)
}

func newReport(cluster string, done []string, err error) Report {
	r := Report{Cluster: cluster, OK: err == nil, Done: append([]string{}, done...), Problems: []string{}}
	if err != nil {
		r.Problems = strings.Split(err.Error(), "\n")
	}
	return r
}

// withName prefixes each line of an error with the cluster's name.
func withName(name string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(name + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+name+": "))
}
