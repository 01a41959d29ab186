#!/usr/bin/env bash
# OpenTelemetry's own collector, with what tests use of it: built once from Go modules, by exact version, into a cache.
source "$(dirname "$0")/lib.sh"
version=0.162.0
tool="$HOME/.cache/ferry-tools/otelcol-$version"
if [ ! -x "$tool" ]; then
    need_go
    say "building the collector"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    collector=go.opentelemetry.io/collector
    cat >"$scratch/ocb.yaml" <<YAML
dist: {name: otelcol, output_path: $scratch/otelcol, module: otelcol, version: $version}
receivers: [{gomod: $collector/receiver/otlpreceiver v$version}]
exporters: [{gomod: $collector/exporter/debugexporter v$version}]
providers: [{gomod: $collector/confmap/provider/fileprovider v1.68.0}, {gomod: $collector/confmap/provider/envprovider v1.68.0}]
YAML
    GOBIN="$scratch" go install "$collector/cmd/builder@v$version"
    CGO_ENABLED=0 "$scratch/builder" --config "$scratch/ocb.yaml" >"$scratch/log" 2>&1 || { tail -n 20 "$scratch/log"; exit 1; }
    mkdir -p "$(dirname "$tool")"
    mv "$scratch/otelcol/otelcol" "$tool"
fi
ln -sfn "$tool" "${CARGO_TARGET_DIR:-target}/otelcol"
