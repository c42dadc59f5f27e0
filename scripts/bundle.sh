# What make_bundle.sh and make_wheel.sh share: both set `usage` and source this file, which reads their arguments,
# [--build FOLDER] [OUTPUT], and goes to the project's folder. Without OUTPUT it is $default_output, where that is set.
# They set `installed`, an installation, `stage`, the folder that is filled, and `scratch`, which goes away, and have lib/
# in `stage`.

fail() { echo "$(basename "$0" .sh): $*" >&2; exit 1; }
here=$(pwd)
cd "$(dirname "$0")/.."
build=build/release
if [[ ${1:-} == --build ]]; then build=$(cd "$here" && realpath "$2"); shift 2; fi
version=$(sed -n 's/^project(hone VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
[[ $# == 0 && -n ${default_output:-} ]] && set -- "${default_output/VERSION/$version}"
[[ $# == 1 && $1 != -* ]] || { echo "$usage" >&2; exit 2; }
output=$(cd "$here" && realpath -m "$1")
[[ $(uname -m) == x86_64 ]] || fail "this is $(uname -m), expected x86_64"
command -v patchelf >/dev/null || fail "no patchelf: run scripts/setup.sh"

programs=()  # all that was added

# The folder of the libLLVM.so that the program was linked with, and of LLVM's archives.
folder_of_llvm() {
  patchelf --print-rpath "$build/tools/hone/hone" | tr ':' '\n' | grep llvm ||
    fail "$build/tools/hone/hone names no folder of LLVM, expected one in its RPATH"
}

# add_program FILE FOLDER [NAME]: a stripped copy in stage/FOLDER, which looks for its libraries, and for theirs, in
# lib/.
add_program() {
  local copy=$stage/$2/${3:-${1##*/}} up
  [[ -f $1 ]] || fail "no $1: build it first (cmake --build --preset release)"
  mkdir -p "$stage/$2"
  strip -o "$copy" "$1"
  up=$(realpath --relative-to="$stage/$2" "$stage/lib")
  patchelf --force-rpath --set-rpath "\$ORIGIN/$up" "$copy"
  programs+=("$copy")
}

# add_server: hone-serve, for --machine: the file for boards of this processor, which needs no libraries, and which an
# archive has once, by two names; where it was not built, the program of the installation.
add_server() {
  local file=$stage/share/hone/boards/x86_64/hone-serve
  if [[ -f $file ]]; then
    ln -f "$file" "$stage/libexec/hone/hone-serve"
  elif [[ -f $installed/libexec/hone/hone-serve ]]; then
    add_program "$installed/libexec/hone/hone-serve" libexec/hone
  else
    echo "$(basename "$0" .sh): no hone-serve was built, as gRPC was not there (libgrpc++-dev), so there is no --machine" >&2
  fi
}

# add_linker FOLDER: LLVM's linker beside the worker, where Hone looks for one if the machine has none.
add_linker() {
  [[ -x $1/../bin/lld ]] || fail "no $1/../bin/lld: run scripts/setup.sh"
  add_program "$1/../bin/lld" libexec/hone ld.lld
}

# needed_glibc: the newest version of glibc that something in the stage asks for, as 36 for 2.36.
needed_glibc() {
  { find "$stage" -type f \( -name '*.so*' -o -perm -100 \) -exec objdump -T {} + 2>/dev/null || true; } |  # scripts, too
    sed -n 's/.*GLIBC_2\.\([0-9]*\).*/\1/p' | sort -n | tail -1
}

# make_llvm FOLDER: a libLLVM.so with what the programs call of LLVM's archives in the folder. That is a third of the
# whole, which has the processors of all makers, and is without the solver and the XML parser that only the rest needs.
# A linker asks for all processors, as it can link LLVM's bitcode, and for manifests of Windows, which need an XML
# parser, and Polly; here it gets the processors that Hone compiles for, and nothing for the others, which it does not use
# on ELF.
make_llvm() {
  local folder=$1 name target
  name=$(patchelf --print-needed "${programs[0]}" | grep '^libLLVM')
  nm -D --undefined-only "${programs[@]}" | sed -n 's/^ *U \(.*\)@LLVM_.*/\1/p' | sort -u >"$scratch/called"
  { echo "LLVM_${name#libLLVM.so.} { global:"; sed 's/$/;/' "$scratch/called"; echo "local: *; };"; } >"$scratch/exports"
  target='^LLVMInitialize.*(TargetInfo|TargetMC|Target|AsmPrinter|AsmParser|Disassembler)$'
  { grep -E "$target" "$scratch/called" | grep -Ev '^LLVMInitialize(X86|AArch64)' || true
    nm --undefined-only "$folder/libLLVMWindowsManifest.a" | sed -n 's/^ *U \(xml.*\)/\1/p' | sort -u
    echo _Z18getPollyPluginInfov
  } | sed 's/.*/void &(void) {}/' >"$scratch/left_out.c"
  gcc -O2 -fPIC -c "$scratch/left_out.c" -o "$scratch/left_out.o"
  g++ -shared -o "$stage/lib/$name" -Wl,-soname,"$name" -Wl,--version-script="$scratch/exports" -Wl,--gc-sections -Wl,-s \
    -Wl,-Bsymbolic -Wl,-z,defs "$scratch/left_out.o" $(sed 's/^/-Wl,-u,/' "$scratch/called") -Wl,--as-needed \
    -Wl,--start-group "$folder"/libLLVM*.a -Wl,--end-group -l:libz.so.1 -l:libzstd.so.1 -l:libtinfo.so.6
}

# All other libraries, but glibc's: those belong to the kernel and the drivers of a machine.
add_libraries() {
  local glibc='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl)\.so\.[0-9]+)$' file
  { ldd "${programs[@]}" "$stage"/lib/*.so*; } | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r file; do
    [[ $file == "$stage"/* || ${file##*/} =~ $glibc ]] || cp -Lu "$file" "$stage/lib/"
  done
  chmod u+w "$stage"/lib/*
}
