#!/usr/bin/env bash
# Fails when a source is not as clang-format would write it; --fix writes it so.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang-format >/dev/null || { echo "missing: apt-get install clang-format" >&2; exit 1; }
mode=(--dry-run -Werror)
[[ "${1:-}" == --fix ]] && mode=(-i)
git ls-files --cached --others --exclude-standard -z -- '*.h' '*.cc' |
  xargs -0 -r -n 20 -P "$(nproc)" clang-format --style=file "${mode[@]}"
