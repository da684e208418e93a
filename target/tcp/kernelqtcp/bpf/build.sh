#!/usr/bin/env bash
# build.sh compiles qtcp.bpf.c into qtcp.bpf.o, which is checked in: a build of the server
# needs no clang. Packages: clang llvm libbpf-dev.
set -euo pipefail
cd "$(dirname "$0")"
include=/usr/include/$(uname -m)-linux-gnu
clang -g -O2 -mcpu=v3 -target bpf -I"$include" -Wall -Werror -ffile-prefix-map="$PWD=." -fdebug-compilation-dir=. -c qtcp.bpf.c -o qtcp.bpf.o
llvm-strip -g qtcp.bpf.o
