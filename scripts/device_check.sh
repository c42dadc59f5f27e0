#!/bin/sh
# Checks and measures a device, in the unpacked portable archive (scripts/make_bundle.sh) or in the repository after a
# build. See docs/contributor/devices.md; --help lists the options.
exec "${PYTHON:-python3}" "$(dirname "$0")/../benchmarks/gpu/device_check.py" "$@"
