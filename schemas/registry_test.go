package schemas

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func startRegistry(t *testing.T) (*Registry, *srfake.Registry) {
	t.Helper()
	server := srfake.New()
	t.Cleanup(server.Close)
	r := must.Get(NewRegistry(server.URL()))(t)
	return r, server
}

func TestRegister_EverySchema(t *testing.T) {
	r, _ := startRegistry(t)
	ids := map[int]string{}
	for _, rec := range records(t, texts{}) {
		id := must.Get(r.Register(t.Context(), rec.file+"-value", rec.schema))(t)
		expect.Equal(t, ids[id], "", "%s: other schema with the id %d", rec.name, id)
		ids[id] = rec.name
		again := must.Get(r.Register(t.Context(), rec.file+"-value", rec.schema))(t)
		expect.Equal(t, again, id, "id of %s registered again", rec.name)
		text := must.Get(r.SchemaByID(t.Context(), id))(t)
		must.OK(t, checkBackward(rec.schema, text))
	}
}

// The registry checks the schemas of other clients against all versions, unless it is configured to be stricter.
func TestRegister_SetsCompatibility(t *testing.T) {
	for _, tt := range []struct{ had, want sr.CompatibilityLevel }{
		{sr.CompatNone, sr.CompatBackwardTransitive},
		{sr.CompatBackward, sr.CompatBackwardTransitive},
		{sr.CompatBackwardTransitive, sr.CompatBackwardTransitive},
		{sr.CompatFullTransitive, sr.CompatFullTransitive},
	} {
		t.Run(tt.had.String(), func(t *testing.T) {
			r, _ := startRegistry(t)
			must.OK(t, r.client.SetCompatibility(t.Context(), sr.SetCompatibility{Level: tt.had})[0].Err)
			must.Get(r.Register(t.Context(), "r-value", recordSchema("R", fieldSchema("a", "int"))))(t)
			got := r.client.Compatibility(t.Context(), "r-value")[0]
			must.OK(t, got.Err)
			expect.Equal(t, got.Level, tt.want, "compatibility")
		})
	}
}

// Two processes that start together set the compatibility at the same time: a registry may reject the second request.
func TestRegister_ConcurrentSetOfCompatibility(t *testing.T) {
	for _, tt := range []struct{ name, set, want string }{
		{"as strict", "BACKWARD_TRANSITIVE", ""},
		{"looser", "BACKWARD", "set the compatibility of r-value to BACKWARD_TRANSITIVE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := srfake.NewRegistry(srfake.WithGlobalCompat(sr.CompatNone))
			refused := 0
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method != http.MethodPut {
					server.Handler().ServeHTTP(w, req)
					return
				}
				refused++
				req.Body = io.NopCloser(strings.NewReader(`{"compatibility":"` + tt.set + `"}`))
				server.Handler().ServeHTTP(httptest.NewRecorder(), req) // the other process's request
				http.Error(w, `{"error_code":50001,"message":"it exists already"}`, http.StatusInternalServerError)
			}))
			t.Cleanup(front.Close)
			r := must.Get(NewRegistry(front.URL))(t)
			_, err := r.Register(t.Context(), "r-value", recordSchema("R", fieldSchema("a", "int")))
			expect.True(t, refused > 0, "a request is refused")
			expect.Error(t, err, tt.want, "Register")
		})
	}
}

func TestRegister_ChangedSchema(t *testing.T) {
	v1 := recordSchema("R", fieldSchema("a", "int"))
	v2 := recordSchema("R", fieldSchema("a", "long"), `{"name":"b","type":"string","default":""}`)
	tests := []struct{ name, next, want string }{ // want: part of the error
		{"a field with a default", recordSchema("R", fieldSchema("a", "long"), `{"name":"b","type":"string","default":""}`, `{"name":"c","type":"int","default":0}`), ""},
		{"a field without", recordSchema("R", fieldSchema("a", "long"), fieldSchema("c", "int")), "c: new field without a default"},
		{"what reads the newest but not the oldest", recordSchema("R", fieldSchema("a", "long"), fieldSchema("b", "string")), "version 1 (id 1): b: new field without a default"},
		{"no schema", `{"type":"wreck"}`, "register r-value: parse schema"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, server := startRegistry(t)
			for _, text := range []string{v1, v2} {
				must.Get(r.Register(t.Context(), "r-value", text))(t)
			}
			id, err := r.Register(t.Context(), "r-value", tt.next)
			_, registered := server.GetSchema("r-value", 3)
			if tt.want == "" {
				if err != nil || id != 3 || !registered {
					t.Errorf("got id %d, %v, registered %t; want 3", id, err, registered)
				}
				return
			}
			expect.Error(t, err, tt.want, "Register")
			expect.Error(t, err, "r-value", "Register")
			expect.False(t, registered, "the schema is registered")
			expect.Equal(t, must.Get(r.Register(t.Context(), "r-value", v1))(t), 1, "id of the oldest again")
		})
	}
}

func TestRegistry_SchemaByID(t *testing.T) {
	r, server := startRegistry(t)
	avroText := recordSchema("R", fieldSchema("a", "int"))
	server.SeedSchema("a-value", 1, 1, sr.Schema{Schema: avroText})
	server.SeedSchema("p-value", 1, 2, sr.Schema{Schema: `syntax = "proto3";`, Type: sr.TypeProtobuf})
	server.SeedSchema("r-value", 1, 3, sr.Schema{Schema: avroText, References: []sr.SchemaReference{{Name: "x", Subject: "a-value", Version: 1}}})
	expect.Equal(t, must.Get(r.SchemaByID(t.Context(), 1))(t), avroText, "schema")
	expect.Is(t, expect.ErrorOf(r.SchemaByID(t.Context(), 9)), ErrNoSchema, "unknown id")
	for id, want := range map[int]string{2: "schema 2 is PROTOBUF, not Avro", 3: "schema 3 refers to other schemas"} {
		_, err := r.SchemaByID(t.Context(), id)
		checkBad(t, err)
		expect.Error(t, err, want, "error")
		_, err = serdeOf[Tick](t, r).Decode(framed(uint32(id), 5))
		expect.Error(t, err, want, "decode")
		checkBad(t, err)
	}
}

// TestRegistry_Errors uses a registry that fails: none of its responses makes a record a bad one.
func TestRegistry_Errors(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		{"404 of something that is no registry", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }},
		{"401", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }},
		{"an answer without end", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"schema":"`))
			for range 3 * maxResponseBytes / (64 << 10) {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}},
		{"many values", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"schema":"\"string\"","references":[` + strings.Repeat("{},", maxResponseBytes/3-20) + `{}]}`))
		}},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"schema":`))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			hits := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				hits++
				tt.answer(w, req)
			}))
			defer server.Close()
			r := must.Get(NewRegistry(server.URL))(t)
			var decodeErr error
			allocated, _ := cost(func() { _, decodeErr = serdeOf[Tick](t, r).Decode(framed(9, 5)) })
			var bad *BadRecordError
			if decodeErr == nil || errors.As(decodeErr, &bad) {
				t.Errorf("decode: got %v, want an error that is no *BadRecordError", decodeErr)
			}
			expect.AtMost(t, allocated, 32<<20, "allocated bytes")
			_, err := r.Register(t.Context(), "x-value", recordSchema("R"))
			expect.Error(t, err, "x-value", "register")
			expect.Error(t, err, server.URL, "register")
			expect.True(t, hits >= 2, "requests to the server: %d", hits)
		})
	}
}

func TestRegistry_Unavailable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	r := must.Get(NewRegistry(address))(t)
	_, err := r.SchemaByID(t.Context(), 1)
	if err == nil || errors.Is(err, ErrNoSchema) || !strings.Contains(err.Error(), "schema registry http://"+address) {
		t.Errorf("got %v, want an error with the address", err)
	}
}

func TestRegistry_Timeout(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer server.Close()
	defer close(done)
	r := must.Get(NewRegistry(server.URL))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	expect.Is(t, expect.ErrorOf(r.Register(ctx, "x-value", recordSchema("R"))), context.DeadlineExceeded, "error")
}

// TestSerde_OverRegistry tests the whole path: an older writer registers its schema, and a newer reader reads its records.
func TestSerde_OverRegistry(t *testing.T) {
	r, _ := startRegistry(t)
	oldText := recordSchema("UserEvent", fieldSchema("id", "string"), fieldSchema("time", "long"),
		fieldSchema("actor", "string"), fieldSchema("verb", "string"), fieldSchema("object", "string"))
	oldID := must.Get(r.Register(t.Context(), "users-value", oldText))(t)
	text := must.Get(Schema[UserEvent]())(t)
	id := must.Get(r.Register(t.Context(), "users-value", text))(t)
	s := must.Get(NewSerde[UserEvent]("users-value", id, r))(t)
	got := must.Get(s.Decode(framed(uint32(oldID), "e", 5, "user:7", "update", "user:7")))(t)
	want := &UserEvent{Event: Event{ID: "e", Time: 5, Actor: "user:7", Verb: Update, Object: "user:7"}}
	expect.NoDiffBut(t, asOnWire, got, want, "decoded")
	_, err := s.Decode(framed(uint32(id+100), 5))
	checkBad(t, err)
}
