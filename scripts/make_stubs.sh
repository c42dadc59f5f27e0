#!/bin/sh
# Makes stubs of another machine's libc.so.6 and libm.so.6: shared libraries with the same names and symbols, and
# nothing behind them. Libraries are linked against the stubs and run with that machine's own. Their symbols
# have no versions, so that the loader takes the default ones.
set -eu
[ $# = 2 ] || { echo "usage: make_stubs.sh PREFIX FOLDER   (PREFIX of the cross tools, such as aarch64-linux-gnu-)" >&2; exit 2; }
for name in libc.so.6 libm.so.6; do
  library=$("$1g++" -print-file-name="$name")
  {
    echo ".text"
    "$1nm" -D --defined-only "$library" | sed -n 's/^[0-9a-f]* [TtWwi] \([A-Za-z_][A-Za-z0-9_]*\)@@\{0,1\}GLIBC_.*/\1/p' | sort -u |
      while read -r symbol; do printf '.globl %s\n.type %s, %%function\n%s:\n' "$symbol" "$symbol" "$symbol"; done
    echo ".byte 0"
  } >"$2/$name.s"
  "$1g++" -shared -nostdlib -nostartfiles -Wl,-soname,"$name" -Wl,--build-id=none -Wl,--hash-style=gnu -o "$2/$name" "$2/$name.s"
  rm "$2/$name.s"
done
