#!/bin/sh
# with_python.sh PYTHON SCRIPT ARGUMENT...: runs it, or says how to get that Python.
if [ ! -x "$1" ]; then
  echo "no $1: run scripts/setup.sh, or configure with -DHONE_PYTHON=... or -DHONE_E2E=OFF" >&2
  exit 1
fi
exec "$@"
