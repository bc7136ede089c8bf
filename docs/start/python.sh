#!/usr/bin/env bash
# python.sh - a Python agent, from nothing to "why is the limit 900?".
. "$(dirname "$0")/measure.sh"

up --no-watch
export CORTEX_URL=$url CORTEX_TOKEN=$(cat "$CORTEX_HOME/token")
type_in python3 "$here/agent.py"
reached 'first record'
type_in "$cortex" lattice why @agent/refunds @refunds limit --section memory
reached 'first answer'
