#!/usr/bin/env bash
# Runs the tests with -race and audits what was skipped. As root, and always in
# CI, nothing may be skipped that testdata/skips.txt does not list.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -eq 0 ] || [ -n "${CI:-}" ]; then
	export OFFLAB_REQUIRE=all
fi

# The race detector is the one thing here that needs cgo.
run() { CGO_ENABLED=1 go test -race -shuffle=on -timeout 25m -json "$@"; }

# Studies of the whole program come last and one at a time: they measure, and
# what runs beside them is noise. The audit finds what failed in either half.
whole=./cmd/offlab
mapfile -t parts < <(go list "$@" | grep -v '/cmd/offlab$' || true)
{
	[ ${#parts[@]} -eq 0 ] || run "${parts[@]}" || true
	run -parallel 1 "$whole" || true
} | go run ./internal/tools/skipaudit testdata/skips.txt
