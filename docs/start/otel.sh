#!/usr/bin/env bash
# otel.sh - a program that is instrumented with OpenTelemetry, from nothing to its words.
. "$(dirname "$0")/measure.sh"

up --no-watch
type_in curl -sS "$otlp/v1/traces" -H 'Content-Type: application/json' -d "@$here/span.json"
echo
reached 'first record'
# The index follows within a moment.
until "$cortex" search cut | grep -q .; do sleep 0.05; done
type_in "$cortex" search cut
reached 'first answer'
