// Holds the pinned modules until every package that needs them exists.

//go:build deps

package main

import (
	_ "github.com/IBM/sarama"
	_ "github.com/cockroachdb/pebble/v2"
	_ "github.com/gofrs/flock"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/hamba/avro/v2"
	_ "github.com/knadh/koanf/v2"
	_ "github.com/lovoo/goka"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "github.com/spf13/pflag"
	_ "github.com/twmb/franz-go/pkg/kadm"
	_ "github.com/twmb/franz-go/pkg/kfake"
	_ "github.com/twmb/franz-go/pkg/kgo"
	_ "github.com/twmb/franz-go/pkg/kmsg"
	_ "github.com/twmb/franz-go/pkg/sr"
	_ "github.com/twmb/franz-go/pkg/sr/srfake"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/time/rate"
	_ "gopkg.in/yaml.v3"
	_ "pgregory.net/rapid"
)

func main() {}
