#!/usr/bin/env bash
# run.sh: measures the tree as it is and writes docs/internals/structure.md. With the
# variable BEFORE, a commit, measures that and notes it as what was before.
set -euo pipefail

cd "$(dirname "$0")/../.."
readonly out=build/structure
go -C scripts build -o "../$out" ./structure
if [ -n "${BEFORE:-}" ]; then
	git worktree add --detach "$out.tree" "$BEFORE"
	trap 'git worktree remove --force "$out.tree"' EXIT
	"$out" measure --tree "$out.tree" --version "$BEFORE" --notes docs/internals/structure/before.json --programs ./cmd/tgtd,./cmd/tgtload
else
	"$out" measure --version "$(git describe --tags --always)"
fi
"$out" document
