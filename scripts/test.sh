#!/usr/bin/env bash
# Runs the tests with -race and audits what was skipped. As root, and always in
# CI, nothing may be skipped that testdata/skips.txt does not list.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -eq 0 ] || [ -n "${CI:-}" ]; then
	export OFFLAB_REQUIRE=all
fi
# The race detector is the one thing here that needs cgo.
CGO_ENABLED=1 go test -race -shuffle=on -timeout 20m -json "$@" |
	go run ./internal/tools/skipaudit testdata/skips.txt
