package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/serving/featurelog"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/topics"
)

// openFeatures opens the features that clients request, and their log.
func (p *App) openFeatures(context.Context) error {
	recorder, err := p.openFeatureLog()
	if err != nil {
		return err
	}
	return p.openFeatureService(recorder.Record)
}

// openGeneratorFeatures opens the features and embeddings that only the local generator requests, if there are any. They come
// from Pinot, see Config.Check.
func (p *App) openGeneratorFeatures(context.Context) error {
	if p.local == nil || !p.cfg.generatorReadsFeatures() {
		return nil
	}
	return p.openFeatureService(nil)
}

// matrix returns the values of features for the model of the generator, which is opened before them.
func (p *App) matrix(ctx context.Context, user schemas.UserID, pins []schemas.PinID, names []string) ([][]float32, error) {
	if p.features == nil {
		return nil, errNoFeatures
	}
	return p.features.Matrix(ctx, user, pins, names)
}

var errNoFeatures = errors.New("this process has no features")

// embeddings returns the embeddings of pins for the local generator, which is opened before the features.
func (p *App) embeddings(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID][]float32, error) {
	if p.features == nil {
		return nil, errNoFeatures
	}
	answer, err := p.features.Attributes(ctx, feature.AttributesRequest{Pins: pins, Embeddings: true})
	if err != nil {
		return nil, err
	}
	found := make(map[schemas.PinID][]float32, len(answer.Pins))
	for pin, a := range answer.Pins {
		found[pin] = a.Embedding
	}
	if len(answer.Degraded) > 0 {
		err = fmt.Errorf("embeddings are degraded: %s", strings.Join(answer.Degraded, ", "))
	}
	return found, err
}

func (p *App) openFeatureService(record func(feature.Request, feature.Answer, time.Time)) error {
	definitions, err := feature.Load(p.cfg.FeaturesFile)
	if err != nil {
		return err
	}
	metrics, err := feature.NewMetrics(p.metrics)
	if err != nil {
		return err
	}
	deps := feature.Deps{
		Deleted: p.deleted, Definitions: definitions, Record: record, Metrics: metrics, Log: p.log, Now: time.Now,
	}
	kind, open := "embedded", p.openEmbeddedFeatures
	if p.cfg.usesPinot() {
		kind, open = pinot.Name, p.openPinot
	}
	if err := open(&deps); err != nil {
		return err
	}
	p.storeOf("features", kind, nil)
	if p.features, err = feature.NewService(p.cfg.Feature, deps); err != nil {
		return err
	}
	p.onCloseDo(p.features.Close)
	p.reloads("feature-definitions", feature.NewReloader(p.cfg.Feature, p.cfg.FeaturesFile, p.features, metrics, p.log))
	return nil
}

// openEmbeddedFeatures makes the feature service read from the embedded store, and opens the sink that fills it.
func (p *App) openEmbeddedFeatures(deps *feature.Deps) error {
	store, err := feature.OpenEmbedded(p.cfg.below("features"), p.cfg.Feature, p.log, time.Now)
	if err != nil {
		return err
	}
	p.onClose(store.Close)
	sink, err := feature.NewSink(p.cfg.Feature, feature.SinkDeps{
		Kafka: p.kafka, Streams: p.streams, Instance: p.instance(), Store: store, Deleted: deps.Deleted, DeadLetters: p.publisher, Metrics: deps.Metrics, Now: time.Now,
	})
	if err != nil {
		return err
	}
	p.component(topics.Features, sink.Run)
	deps.Store, deps.Fresh = store, sink.Fresh
	return nil
}

// openPinot makes the feature service read from Pinot, which reads the topics itself.
func (p *App) openPinot(deps *feature.Deps) error {
	client, err := pinot.NewClient(p.cfg.Pinot)
	if err != nil {
		return err
	}
	p.onCloseDo(client.Close)
	deps.Store, deps.PinsPerScan = pinot.NewStore(p.cfg.Feature, client), feature.MaxEntities // one query for all pins of a request
	consumers, err := pinot.NewExternalConsumers(p.cfg.Pinot)
	if err != nil {
		return err
	}
	lateness := feature.Lateness{
		Metrics: deps.Metrics, Log: p.log, Now: time.Now,
		Oldest: func(ctx context.Context) (time.Time, error) { return p.ends.OldestUnprocessed(ctx, consumers...) },
	}
	p.component("feature-lateness", lateness.Run)
	return nil
}

// openFeatureLog opens the recorder of feature responses, and the sink that writes them to files.
func (p *App) openFeatureLog() (*featurelog.Recorder, error) {
	metrics, err := featurelog.NewMetrics(p.metrics)
	if err != nil {
		return nil, err
	}
	client, err := p.kafka.Client()
	if err != nil {
		return nil, err
	}
	p.onCloseDo(client.Close)
	cfg := p.cfg.FeatureLog
	cfg.Dir = p.cfg.below(cfg.Dir)
	files, err := featurelog.NewFiles(cfg, featurelog.FilesDeps{
		Kafka: p.kafka, Stream: p.streams.FeatureLog, DeadLetters: p.publisher, Metrics: metrics,
	})
	if err != nil {
		return nil, err
	}
	p.component(topics.FeatureFiles, files.Run)
	run := strconv.FormatInt(time.Now().UnixMicro(), 36)
	return featurelog.NewRecorder(cfg, client, p.streams.FeatureLog, run, metrics), nil
}

func (p *App) openFeed(context.Context) error {
	if p.storeLag != nil {
		p.component(storeLagComponent, p.storeLag.Run)
		p.optional = append(p.optional, storeLagComponent)
	}
	client, err := p.kafka.Client()
	if err != nil {
		return err
	}
	p.onCloseDo(client.Close)
	key, err := feed.LoadKey(p.cfg.below(p.cfg.Feed.CursorKeyFile))
	if err != nil {
		return err
	}
	log := feed.NewLog(client, p.streams)
	p.feed, err = feed.New(p.cfg.Feed, feed.Deps{
		Generator: p.services.Generator, Explainer: p.services.Generator, Pools: p.services.Generator, Neighbors: p.services.Neighbors,
		Store: p.store, Deleted: p.deleted, TTL: p.cfg.FeedStore.ttl(),
		Served: log, Activity: log, CursorKey: key, Metrics: p.metrics,
	})
	if err != nil {
		return err
	}
	p.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), p.cfg.API.ShutdownTimeout)
		defer cancel()
		return p.feed.Close(ctx)
	})
	return nil
}
