#!/usr/bin/env bash
# Makes hone-serve for boards with 64-bit Arm: one static file that needs nothing of the board but its kernel
# (docs/user/remote.md). It is compiled by Debian's cross compiler with Debian's libraries for arm64, which are downloaded
# to build/board: nothing is installed.
set -euo pipefail
usage="usage: scripts/make_board_program.sh [OUTPUT]    (default: build/board/hone-serve)"
[[ $# -le 1 && ${1:-} != -* ]] || { echo "$usage" >&2; exit 2; }
here=$(pwd)
cd "$(dirname "$0")/.."
output=$(cd "$here" && realpath -m "${1:-$OLDPWD/build/board/hone-serve}")
compiler=aarch64-linux-gnu-g++
fail() { echo "make_board_program: $*" >&2; exit 1; }
for program in "$compiler" protoc grpc_cpp_plugin pkg-config apt-get dpkg; do
  command -v "$program" >/dev/null || fail "no $program: run scripts/setup.sh"
done

folder=$(pwd)/build/board
root=$folder/root
packages=(libgrpc++-dev libgrpc-dev libprotobuf-dev libssl-dev libabsl-dev libc-ares-dev libre2-dev zlib1g-dev libhwloc-dev
          libfmt-dev libcli11-dev libtomlplusplus-dev)

get_packages() {
  [[ -f $folder/.packages && $(<"$folder/.packages") == "${packages[*]}" ]] && return
  mkdir -p "$folder"/apt/{lists,archives}/partial "$folder/debs"
  touch "$folder/apt/status"
  cat >"$folder/apt/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State "$folder/apt";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt";
END
  export APT_CONFIG=$folder/apt/apt.conf
  apt-get update -qq
  (cd "$folder/debs" && apt-get download -qq "${packages[@]}")
  unset APT_CONFIG
  rm -rf "$root"
  for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$root"; done
  echo "${packages[*]}" >"$folder/.packages"
}

sources=(
  tools/serve/main.cc tools/hone/serve_options.cc
  src/hone/backend/executable.cc
  src/hone/backend/loading/{c_functions,load,loaded_object,relocate}.cc
  src/hone/base/{allocation,clock,file,hash,input_file,installation,memory_bound,options,output_file,printable}.cc
  src/hone/base/{temporary_name,wire,worker_child,worker_program}.cc
  src/hone/ir/{expr,scalar,stmt}.cc
  src/hone/measure/{arena,candidate,core_state,counter_events,counters,device_candidate,device_memory,flush,gpu_clocks}.cc
  src/hone/measure/{host_load,local_runner,operands,protocol,sweep,timing,verify,worker,worker_operands,worker_process}.cc
  src/hone/remote/{connect_message,machine_file,names,operand_digest,operand_store,protocol,service,session,turns}.cc
  src/hone/remote/grpc/{relay,server}.cc
  src/hone/runtime/{cpu_budget,placement,pool}.cc
  src/hone/runtime/device/{code,cuda,cuda_api,cuda_code,cuda_events,device,opencl,opencl_api,watchdog}.cc
  src/hone/target/{cgroup,cpu_devices,cpuid,gpu_devices,gpu_table,key_text,kind,machine_table,target,topology}.cc
  src/hone/tensor/{dtype,half}.cc
  src/hone/trial/{statistics,timing}.cc
)

get_packages
generated=$folder/generated
mkdir -p "$generated" "$folder/objects"
protoc --proto_path src/hone/remote/grpc --cpp_out "$generated" --grpc_out "$generated" \
  "--plugin=protoc-gen-grpc=$(command -v grpc_cpp_plugin)" remote.proto
# hwloc asks udev for the names of disks, and of Debian's udev there is no static library.
cat >"$generated/no_udev.cc" <<'END'
struct udev;
struct udev_device;
extern "C" udev* udev_new() { return nullptr; }
extern "C" udev* udev_unref(udev*) { return nullptr; }
extern "C" udev_device* udev_device_new_from_subsystem_sysname(udev*, const char*, const char*) { return nullptr; }
extern "C" udev_device* udev_device_unref(udev_device*) { return nullptr; }
extern "C" const char* udev_device_get_property_value(udev_device*, const char*) { return nullptr; }
END
version=$(sed -n 's/^project(hone VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
triple=aarch64-linux-gnu
flags=(-std=c++20 -O2 -DNDEBUG -DFMT_HEADER_ONLY "-DHONE_VERSION=\"$version\"" '-DHONE_INSTALL_PREFIX="/usr/local"' -w
       -mno-outline-atomics -fstack-protector-strong -ffunction-sections -fdata-sections -I src -I include
       -isystem "$generated" -isystem "$root/usr/include" -isystem "$root/usr/include/$triple")
makefile=$folder/objects.mk
{
  objects=()
  for source in "${sources[@]}" "$generated"/{no_udev,remote.pb,remote.grpc.pb}.cc; do
    object=$folder/objects/$(tr / _ <<<"${source#"$(pwd)"/}").o
    objects+=("$object")
    printf '%s: %s\n\t%s -MD -c %s -o %s\n' "$object" "$source" '$(COMPILE)' "$source" "$object"
  done
  printf 'all: %s\n.PHONY: all\n.DEFAULT_GOAL := all\n-include %s/objects/*.d\n' "${objects[*]}" "$folder"
} >"$makefile"
make --no-print-directory -s -j "$(nproc)" -f "$makefile" "COMPILE=$compiler $(printf '%q ' "${flags[@]}")"

export PKG_CONFIG_LIBDIR=$root/usr/lib/$triple/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
read -ra libraries <<<"$(pkg-config --static --libs grpc++ protobuf hwloc | sed 's/-ludev//')"
mkdir -p "$(dirname "$output")"
# Warnings of the linker are about functions that load libraries: of GPUs, which boards have none of, and of names.
"$compiler" -static -Wl,--gc-sections -Wl,-z,relro,-z,now -o "$output" "$folder"/objects/*.o -L "$root/usr/lib/$triple" \
  -Wl,--start-group "${libraries[@]}" -Wl,--end-group -lpthread -ldl 2>"$folder/link.log" || { cat "$folder/link.log" >&2; exit 1; }
aarch64-linux-gnu-strip "$output"
echo "made $output: $(stat -c %s "$output") bytes"
