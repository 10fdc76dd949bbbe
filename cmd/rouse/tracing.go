package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/tracing/otlp"
)

// openTracing makes the exporter of spans, if there is to be one.
func (c *core) openTracing(ctx context.Context) error {
	cfg := c.cfg.Tracing
	if cfg.Endpoint == "" {
		return nil
	}
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		c.log.Warn("no traces are sent: OTEL_SDK_DISABLED is true")
		return nil
	}
	e, err := otlp.New(ctx, otlp.Config{
		Endpoint: cfg.Endpoint, Sample: cfg.Sample, Instance: c.name, Version: programBuild().Version,
		Logger: c.log, Registerer: c.reg,
	})
	if err != nil {
		return fail(exitConfig, fmt.Errorf("tracing.endpoint: %w", err))
	}
	c.exporter = e
	return nil
}

// tracer takes spans; nil, where there is no exporter.
func (c *core) tracer() tracing.Tracer {
	if c.exporter == nil {
		return nil // and no Tracer that holds a nil exporter
	}
	return c.exporter
}

// traced runs top, whose last spans are sent after it has ended.
func (c *core) traced(ctx context.Context, top part) error {
	if c.exporter == nil {
		return top(ctx)
	}
	return beneath(ctx, c.exporter.Run, top)
}
