package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Start implements otlptrace.Client.
func (p *poster) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (p *poster) Stop(context.Context) error { return nil }

// UploadTraces posts spans. It retries if the collector asks for it or cannot be reached, until ctx is done.
func (p *poster) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire, the request equals TracesData: one list, field 1. The request's own type would import gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	delays := backoff.ExponentialBackOff{InitialInterval: 100 * time.Millisecond, Multiplier: 2, MaxInterval: time.Minute}
	for {
		again, err := p.post(ctx, body)
		if err == nil || again < 0 {
			return err
		}
		select {
		case <-time.After(max(again, delays.NextBackOff())):
		case <-ctx.Done():
			return err
		}
	}
}

// post posts once. After an error it returns the minimum delay before a retry; if it is negative, a retry is useless.
func (p *poster) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return -1, errors.New("make request")
	}
	req.Header = p.header.Clone()
	resp, err := p.http.Do(req)
	if err != nil {
		return 0, fmt.Errorf("post: %w", cause(err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be reused
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	return repeatable(resp), fmt.Errorf("post: %s", resp.Status)
}

// repeatable returns the delay before a retry: https://opentelemetry.io/docs/specs/otlp/#retryable-response-codes.
func repeatable(resp *http.Response) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			return time.Duration(min(seconds, 3600)) * time.Second
		}
		return 0
	}
	return -1
}

// cause returns an error of the client without the URL.
func cause(err error) error {
	var told *url.Error
	if errors.As(err, &told) {
		return told.Err
	}
	return err
}
