#!/usr/bin/env bash
# library.sh [--check]: takes the library of the web page from its published package, or says
# whether the one that is here is another. Nothing is built: browsers get the file as it is.
set -euo pipefail

readonly package=lit-html@3.3.3
here=$(cd "$(dirname "$0")/../../control/webpage" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
npm pack --silent "$package" >/dev/null
tar xzf lit-html-*.tgz
if [ "${1:-}" = --check ]; then
	cmp package/lit-html.js "$here/files/lit-html.js"
	cmp package/LICENSE "$here/LICENSE-lit-html"
	echo "control/webpage has $package as it was published"
else
	install -m 644 package/lit-html.js "$here/files/lit-html.js"
	install -m 644 package/LICENSE "$here/LICENSE-lit-html"
fi
