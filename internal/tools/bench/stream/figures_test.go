package stream

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// figures are the costs of one event or request.
type figures struct {
	counters
	n        int                // events or answers
	rate     float64            // per second
	latency  *measure.Histogram // nil for events
	items    float64            // shown for the first time
	outcomes map[string]int     // of requests
	cpu      []float64          // µs, by part
	traffic  traffic            // bytes
	rows     float64            // of the bare loop; 0: bareRows
}

// since returns the costs of n events or answers since an earlier usage.
func (u usage) since(before usage, n int) figures {
	n = max(1, n)
	took := u.at.Sub(before.at)
	f := figures{n: n, rate: float64(n) / took.Seconds(), counters: counters{}}
	for i := range u.cpu {
		f.cpu = append(f.cpu, float64((u.cpu[i]-before.cpu[i]).Microseconds())/float64(n))
		if u.rest != nil {
			f.cpu[i] = max(0, f.cpu[i]-u.rest[i]*float64(took.Microseconds())/float64(n))
		}
	}
	for i := range u.traffic {
		f.traffic[i] = (u.traffic[i] - before.traffic[i]) / float64(n)
	}
	for name := range u.counters {
		f.counters[name] = (u.counters[name] - before.counters[name]) / float64(n)
	}
	return f
}

// print prints the figures of the product, with their ratios to those of the bare loop. fifths are those of fifths of the events.
func (r *run) print(title string, f, bare figures, fifths ...figures) {
	fmt.Printf("%-20s %8d: %8.0f/s (%s)%s\n", title, f.n, f.rate, ratio(f.rate, bare.rate), f.latencies(bare))
	for i, p := range r.parts {
		var costs []float64
		for _, fifth := range fifths {
			costs = append(costs, fifth.cpu[i])
		}
		same := max(0, slices.IndexFunc(r.bare.parts, func(other part) bool { return other.name == p.name })) // 0: the loop itself
		fmt.Printf("  %-12s CPU %8.1f µs (%s)", p.name, f.cpu[i], ratio(f.cpu[i], bare.cpu[same]))
		if len(fifths) > 1 {
			fmt.Printf("  CPU by fifth %.1f", costs)
		}
		fmt.Println()
	}
	fmt.Printf("  %-12s written %.0f B, tables %.0f B of it; read by groups %.0f B, by each serve %.0f B\n", "topics",
		f.traffic[written], f.traffic[tables], f.traffic[groups], f.traffic[serve])
	f.printGroups(cmp.Or(bare.rows, bareRows))
}

// ratio compares a figure with that of the bare loop, whose CPU time can be below the resolution of the system, 10 ms.
func ratio(f, bare float64) string {
	if bare == 0 {
		return "bare: 0"
	}
	return fmt.Sprintf("%.3g × bare", f/bare)
}

// latencies returns the latencies of answers as text, "" for events.
func (f figures) latencies(bare figures) (text string) {
	if f.latency == nil {
		return ""
	}
	for _, q := range []float64{0.5, 0.99} {
		took := f.latency.Quantile(q)
		text += fmt.Sprintf("  p%.0f %s (%s)", 100*q, took.Round(10*time.Microsecond), ratio(took.Seconds(), bare.latency.Quantile(q).Seconds()))
	}
	return text + fmt.Sprintf("  new items %.1f  %v", f.items, f.outcomes)
}

// printTotals prints memory and disk, with their ratios to those of the bare loop with the last events.
func (r *run) printTotals() {
	bare := r.bare.parts[0]
	for _, p := range r.parts {
		memory, disk := p.peak(r.b), p.disk(r.b)
		fmt.Printf("%-14s memory %5.0f MiB (%s)  disk %6.0f MiB (%s)\n", p.name,
			memory, ratio(memory, bare.peak(r.b)), disk, ratio(disk, bare.disk(r.b)))
	}
}

// printGroups prints the rows, records and transactions by group and in total. bare are the rows of the bare loop.
func (f figures) printGroups(bare float64) {
	for _, group := range append(topics.RowGroups(), "") {
		var each []float64
		for _, metric := range []string{"rows_written_total", "rows_deleted_total", "records_emitted_total", "commits_total"} {
			each = append(each, f.sum(metric, group))
		}
		if slices.Max(each) > 0.0005 {
			line := fmt.Sprintf("  %-12s rows %7.3f  deleted %7.3f  records %7.3f  transactions %6.3f", cmp.Or(group, "all groups"), each[0], each[1], each[2], each[3])
			if group == "" {
				line += fmt.Sprintf("  (rows %s)", ratio(each[0], bare))
			}
			fmt.Println(line)
		}
	}
}

// traffic is the number of bytes in the topics of the catalogue, one replica without indexes, and the number of bytes that
// consumers with committed offsets have read if they have no lag.
type traffic [4]float64

// Kinds of traffic.
const (
	written = iota
	tables  // the compacted part of written
	groups  // read by groups and feed stores
	serve   // read by each `serve`
)

func trafficOf(t testing.TB, adm *kadm.Client) (sum traffic) {
	t.Helper()
	catalogue := map[string]topics.Topic{}
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		catalogue[topic.Name] = topic
	}
	brokers := must.Get(adm.DescribeAllLogDirs(t.Context(), nil))(t)
	for _, dirs := range brokers {
		dirs.EachPartition(func(p kadm.DescribedLogDirPartition) { sum.add(catalogue[p.Topic], float64(p.Size)) })
	}
	return sum
}

func (s *traffic) add(topic topics.Topic, bytes float64) {
	if topic.Name == "" {
		return // not in the catalogue
	}
	s[written] += bytes
	if topic.Compact {
		s[tables] += bytes
	}
	for _, reader := range topic.Readers {
		if reader == topics.Features || reader == topics.Insights {
			s[serve] += bytes
		} else {
			s[groups] += bytes
		}
	}
}
