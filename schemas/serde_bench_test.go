package schemas

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func benchAction() *ActionEvent {
	return &ActionEvent{
		Event: Event{ID: "e-81", Time: 1_795_168_800_123_000, Actor: "user:7", Verb: Save, Object: "pin:42"},
		Board: "board:9", Surface: "home", Attributes: map[string]string{"device": "ios"},
	}
}

func benchDelivery(users int) *Delivery {
	d := &Delivery{Source: Following, Pins: []DeliveredPin{{
		Pin: "pin:241294492511762325", Version: 1_795_168_800_123_000, PinContent: PinContent{Created: 1_795_168_800_123_000, Facets: Facets{Author: "user:7", Board: "board:9", Interests: []InterestID{"interest:ceramics", "interest:home"}}}, BaseScore: 8310.96,
	}}}
	for i := range users {
		d.Users = append(d.Users, UserID(fmt.Sprintf("user:%d", 100_000+i)))
		d.Weights = append(d.Weights, 1.5)
	}
	return d
}

func benchmarkSerde[T any](b *testing.B, rec *T) {
	s := serdeOf[T](b, texts{})
	value, err := s.Encode(rec)
	must.OK(b, err)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(value)))
		for b.Loop() {
			must.Get(s.Encode(rec))(b)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(value)))
		for b.Loop() {
			must.Get(s.Decode(value))(b)
		}
	})
	b.Run("decode other", func(b *testing.B) { // a writer with one more field
		text, err := Schema[T]()
		must.OK(b, err)
		text = strings.Replace(text, `"fields": [`, `"fields": [{"name": "extra", "type": "int"},`, 1)
		s := serdeOf[T](b, texts{9: text})
		other := slices.Concat([]byte{0, 0, 0, 0, 9, 2}, value[frameHead:])
		b.ReportAllocs()
		for b.Loop() {
			must.Get(s.Decode(other))(b)
		}
	})
	b.Run("conform", func(b *testing.B) { // the check's share of decode
		b.ReportAllocs()
		for b.Loop() {
			must.OK(b, conform(s.framing.reader, value[frameHead:]))
		}
	})
}

func BenchmarkAction(b *testing.B)      { benchmarkSerde(b, benchAction()) }
func BenchmarkDelivery1(b *testing.B)   { benchmarkSerde(b, benchDelivery(1)) }
func BenchmarkDelivery100(b *testing.B) { benchmarkSerde(b, benchDelivery(100)) }
func BenchmarkDelivery1000(b *testing.B) {
	benchmarkSerde(b, benchDelivery(1000))
}

func BenchmarkParseLine(b *testing.B) {
	a := benchAction()
	line, err := AppendLine(nil, Line{StreamActions, a, a.Key()})
	must.OK(b, err)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		must.Get(ParseLine(line))(b)
	}
}
