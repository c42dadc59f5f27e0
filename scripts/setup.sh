#!/usr/bin/env bash
# Gets all that building, testing and the demo need: Debian packages by apt, and a Python with NumPy,
# onnx and ONNX Runtime in build/venv. Asks nothing and does nothing twice.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  # to build
  g++ cmake ninja-build pkg-config git
  llvm-22-dev libonnx-dev libprotobuf-dev protobuf-compiler libhwloc-dev libsqlite3-dev
  nlohmann-json3-dev libcli11-dev libabsl-dev libfmt-dev zlib1g-dev libpq-dev libxgboost-dev libtorch-dev
  libtomlplusplus-dev libgrpc++-dev protobuf-compiler-grpc
  # to test and to measure against
  libgtest-dev libonnx-testdata libbenchmark-dev libdnnl-dev libopenblas-dev ocl-icd-opencl-dev binutils python3-venv
  ocl-icd-libopencl1 pocl-opencl-icd
  # to link and to run libraries for other machines
  "g++-$([[ $(uname -m) == aarch64 ]] && echo x86-64 || echo aarch64)-linux-gnu" qemu-user-static
  postgresql-15
  # to make the portable archive and the wheel of the Python package
  patchelf zstd lld-22
  # tensors for tests of the Python package
  python3-torch
  # to look at the pages of reports
  chromium-headless-shell
  # to check the sources
  clang-format
)
venv=build/venv
requirements=(scripts/requirements.txt)

with_board=  # hone-serve for boards of 64-bit Arm

for argument in "$@"; do
  case "$argument" in
    --with-openvino) requirements+=(scripts/requirements-openvino.txt) ;;
    --with-nvrtc) requirements+=(scripts/requirements-nvrtc.txt) ;;
    --with-torch) requirements+=(scripts/requirements-torch.txt) ;;
    --with-board) with_board=yes ;;
    *) echo "usage: scripts/setup.sh [--with-openvino] [--with-nvrtc] [--with-torch] [--with-board]" >&2; exit 2 ;;
  esac
done

# quietly WHAT COMMAND...: its output is shown only when it fails.
quietly() {
  local what=$1 log
  shift
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "setup: failed: $what" >&2
    exit 1
  fi
  rm -f "$log"
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "neither root nor sudo; run as root: $*" >&2
    return 1
  fi
}

installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# install_packages PACKAGE...
updated=
install_packages() {
  local missing=()
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  echo "setup: installing ${missing[*]}"
  [[ -n $updated ]] || quietly "apt-get update" as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  updated=yes
  quietly "apt-get install ${missing[*]}" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# The first Python that can make a virtual environment.
make_venv() {
  local python
  for python in /usr/bin/python3 python3; do
    if "$python" -m venv --clear "$venv" >/dev/null 2>&1; then
      return
    fi
  done
  echo "setup: no python3 can make a virtual environment: apt-get install python3-venv" >&2
  exit 1
}

install_python() {
  local stamp wanted
  stamp="$venv/.installed"
  wanted=$(cat "${requirements[@]}")
  # What is there and asked for no longer (--with-openvino, --with-nvrtc, --with-torch) stays.
  if [[ -f $stamp && $(<"$stamp") == "$wanted"* ]] && "$venv/bin/python" -c '' 2>/dev/null; then
    return
  fi
  echo "setup: making $venv"
  mkdir -p build
  make_venv
  quietly "pip install" "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "${requirements[@]/#/--requirement=}"
  printf '%s\n' "$wanted" >"$stamp"
}

if ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get here; these Debian packages must be there by other means: ${packages[*]}" >&2
  install_packages() { :; }
fi
# Python's packages come while Debian's do.
install_packages python3-venv
install_python &
python=$!
trap 'kill "$python" 2>/dev/null || true' EXIT
install_packages "${packages[@]}"
wait "$python"
trap - EXIT
[[ -z $with_board ]] || scripts/board_packages.sh
