#!/bin/sh
# Makes stubs of another machine's libc.so.6 and libm.so.6: shared libraries with the same names and symbols, and
# nothing behind them. Libraries are linked against the stubs and run with that machine's own. Their symbols
# have no versions, so that the loader takes the default ones. The loader that libc needs is there whenever libc is, so
# libc's stub has its symbols, too (__tls_get_addr on x86-64).
set -eu
[ $# = 2 ] || { echo "usage: make_stubs.sh PREFIX FOLDER   (PREFIX of the cross tools, such as aarch64-linux-gnu-)" >&2; exit 2; }

# symbols PREFIX LIBRARY: the functions that it has for others; an error if there are none.
symbols() {
  "$1nm" -D --defined-only "$2" >"$lists/all"
  sed -n 's/^[0-9a-f]* [TtWwi] \([A-Za-z_][A-Za-z0-9_]*\)@@\{0,1\}GLIBC_.*/\1/p' "$lists/all" >"$lists/functions"
  [ -s "$lists/functions" ] || { echo "make_stubs.sh: $2 has no functions of glibc" >&2; exit 1; }
  cat "$lists/functions"
}
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

for name in libc.so.6 libm.so.6; do
  library=$("$1g++" -print-file-name="$name")
  symbols "$1" "$library" >"$lists/stub"
  if [ "$name" = libc.so.6 ]; then
    loader=$("$1readelf" -d "$library" | sed -n 's/.*(NEEDED).*\[\(ld-linux.*\)\]/\1/p')
    symbols "$1" "$("$1g++" -print-file-name="$loader")" >>"$lists/stub"
  fi
  {
    echo ".text"
    sort -u "$lists/stub" |
      while read -r symbol; do printf '.globl %s\n.type %s, %%function\n%s:\n' "$symbol" "$symbol" "$symbol"; done
    echo ".byte 0"
  } >"$2/$name.s"
  "$1g++" -shared -nostdlib -nostartfiles -Wl,-soname,"$name" -Wl,--build-id=none -Wl,--hash-style=gnu -o "$2/$name" "$2/$name.s"
  rm "$2/$name.s"
done
