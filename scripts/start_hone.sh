#!/bin/sh
# bin/hone of the portable archive: starts the program, or says why this system cannot run it. Without this, the loader
# prints a line for each function that an older glibc lacks. make_bundle.sh writes the version in.
loader=/lib64/ld-linux-x86-64.so.2
if [ ! -e $loader ]; then
  echo "hone: this system has no $loader, the loader of glibc for x86-64, which this archive needs" >&2
  exit 2
fi
found=$(getconf GNU_LIBC_VERSION 2>/dev/null) # "glibc 2.36"
minor=${found#glibc 2.}
if [ "$minor" != "$found" ] && [ "${minor%%[!0-9]*}" -lt @GLIBC@ ]; then
  echo "hone: this system has $found, but this archive needs glibc 2.@GLIBC@ or newer," \
    "as Debian 12 and Ubuntu 24.04 have" >&2
  exit 2
fi
here=$(readlink -f "$0")
exec "${here%/*}/../programs/hone" "$@"
