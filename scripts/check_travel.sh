#!/usr/bin/env bash
# Fails, and says what is largest, if an archive does not fit beside the files of the repository into what a lent machine
# takes: check_travel.sh ARCHIVE [FOLDER], which is the folder that the archive has.
set -euo pipefail
limit=$((64 << 20))
archive=$(realpath "$1")
folder=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."

# What travels of the repository: "SIZE PATH" lines. The archive may be among it.
list_tree() { git ls-files -z --cached --others --exclude-standard | xargs -0 -r stat --printf '%s %n\n' 2>/dev/null | grep -vF " ${archive#"$PWD"/}" || true; }

tree=$(list_tree | awk '{ sum += $1 } END { print sum + 0 }')
size=$(stat -c %s "$archive")
echo "$(basename "$archive"), $((size >> 10)) KiB, and the repository, $((tree >> 10)) KiB: $(((tree + size) >> 10)) KiB of $((limit >> 10))"
((tree + size > limit)) || exit 0
echo "the largest files of the repository, in bytes:" >&2
list_tree | sort -rn | sed -n 1,8p >&2
if [[ $folder ]]; then
  echo "the largest files of the archive, before they are compressed:" >&2
  (cd "$folder" && find . -type f -printf '%s %P\n' | sort -rn | sed -n 1,8p) >&2
fi
echo "check_travel: the archive and the repository have $((tree + size)) bytes, a lent machine takes $limit" >&2
exit 1
