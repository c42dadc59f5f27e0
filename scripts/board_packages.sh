#!/usr/bin/env bash
# Puts Debian's headers and static libraries for 64-bit Arm into build/board/aarch64, where CMake looks for them to make
# hone-serve for boards (cmake/HoneBoardServer.cmake). Nothing is installed: apt downloads the packages with lists of its
# own, and dpkg unpacks them. Does nothing twice.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(libgrpc++-dev libgrpc-dev libabsl-dev libc-ares-dev libcli11-dev libfmt-dev libhwloc-dev libprotobuf-dev libre2-dev libssl-dev
  libtomlplusplus-dev zlib1g-dev)
folder=$PWD/build/board/aarch64
[[ ! -e $folder/.complete || $(<"$folder/.complete") != "${packages[*]}" ]] || exit 0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{lists/partial,cache/archives/partial,packages}
: >"$scratch/status"
cat >"$scratch/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State "$scratch";
Dir::State::status "$scratch/status";
Dir::State::lists "$scratch/lists";
Dir::Cache "$scratch/cache";
APT::Sandbox::User "$(id -un)";
END
export APT_CONFIG=$scratch/apt.conf
if ! { apt-get update -qq && cd "$scratch/packages" && apt-get download -qq "${packages[@]}"; } >"$scratch/log" 2>&1; then
  cat "$scratch/log" >&2
  echo "board_packages: apt-get cannot download packages for arm64" >&2
  exit 1
fi
rm -rf "$folder"
mkdir -p "$folder"
for package in "$scratch"/packages/*.deb; do dpkg-deb --extract "$package" "$folder"; done
echo "${packages[*]}" >"$folder/.complete"
