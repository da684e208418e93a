#!/usr/bin/env bash
# run.sh [OPTIONS]: looks at the web page of build/tgtd and writes docs/reports/see.md.
# Variables: ONLY (checks, with commas), ROUNDS, PAGES, NOTES, TO and PICTURES (other places
# for the results, the page and the pictures), TGTD (another binary), AXE (axe.min.js).
set -euo pipefail

cd "$(dirname "$0")/../../.."
readonly out=build/evidence-see axe=axe-core@4.14.1
go -C scripts build -o "../$out" ./evidence/see
scripts/webpage/library.sh --check
if [ -z "${AXE:-}" ] && command -v npm >/dev/null; then
	AXE=build/axe.min.js
	(cd build && npm pack --silent "$axe" >/dev/null && tar xzf axe-core-*.tgz --strip-components=1 package/axe.min.js && rm axe-core-*.tgz)
fi
options=(--tgtd "${TGTD:-build/tgtd}")
for name in ONLY ROUNDS PAGES NOTES TO PICTURES AXE; do
	if [ -n "${!name:-}" ]; then
		options+=("--${name,,}" "${!name}")
	fi
done
exec "$out" "${options[@]}" "$@"
