#!/usr/bin/env python3
"""Builds some libraries with sanitizers, by clang 16, and links tests and programs with them and with all others as
build/release has them: `sanitize_folders.py build/asan_part --libraries hone_base hone_db --targets
src/hone/db/hone_db_test` writes build/asan_part/build.ninja, which `ninja -C build/asan_part` builds. Sources are
translated in the groups that the release has. --python adds the Python package for build/venv/bin/python, in
build/asan_part/site, with the shared library in it."""
import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build" / "release"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
# Options that gcc alone knows, or that only a release has.
DROPPED = re.compile(r"-O\d|-DNDEBUG|-W.*|-fpch-preprocess|-fstack-protector-strong|-fno-semantic-interposition")
RULES = """\
rule translate
  command = cd {release} && {compile} -MD -MF {folder}/$out.d -o {folder}/$out $in
  depfile = {folder}/$out.d
  deps = gcc
  description = $out
rule archive
  command = rm -f $out && ar qcs $out $in
rule link
  command = cd {release} && {compiler} {sanitize} {shared} $flags -o {folder}/$out $objects $libraries
"""


class Build:
    def __init__(self, folder, sanitizers, compiler):
        self.folder, self.ninja = folder, (RELEASE / "build.ninja").read_text()
        commands = json.loads((RELEASE / "compile_commands.json").read_text())
        self.commands = {re.search(r" -o (\S+)", entry["command"])[1]: entry["command"].split() for entry in commands}
        self.headers, self.archives, self.translated, self.lines = {}, {}, set(), []
        self.sanitize = f"-fsanitize={sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer"
        shared = ""
        if "address" in sanitizers.split(","):  # the same for programs, libraries and a Python that loads it first
            runtime = subprocess.check_output([compiler, "-print-file-name=libclang_rt.asan-x86_64.so"], text=True)
            shared = f"-shared-libasan -Wl,-rpath,{Path(runtime).parent}"
        compile = f"{compiler} $flags -O0 -g1 -w -fpch-instantiate-templates {self.sanitize}"
        self.lines.append(RULES.format(release=RELEASE, folder=folder, sanitize=self.sanitize, shared=shared, compiler=compiler, compile=compile))

    def rule(self, kind, name):
        """What the release's build.ninja says of a target: its inputs and its variables."""
        found = re.search(rf"^build (?:\S*/)?{re.escape(name)}: {kind}\S* (.*?)(?: \|.*)?\n((?:  .*\n)*)", self.ninja, re.M)
        if found is None:
            sys.exit(f"sanitize_folders: {RELEASE} has no target {name}")
        return found[1].split(), dict(re.findall(r"^  (\w+) = (.*)$", found[2], re.M))

    def library(self):
        """The shared library's file, and the name by which programs load it."""
        file = re.search(r"^build (\S*/libhone\.so\.\S+): CXX_SHARED_LIBRARY", self.ninja, re.M)[1]
        return file, self.rule("CXX_SHARED_LIBRARY_LINKER", Path(file).name)[1]["SONAME"]

    def header(self, path, flags):
        """The headers that most sources include, translated once for each way to translate them."""
        flags = [flag for flag in flags if flag.startswith(("-f", "-std", "-DFMT", "-DGTEST"))]
        key = (path, *flags)
        if key not in self.headers:
            self.headers[key] = f"headers_{len(self.headers)}.pch"
            self.lines.append(f"build {self.headers[key]}: translate {path}\n  flags = -x c++-header {' '.join(flags)}\n")
        return self.headers[key]

    def flags(self, name):
        """How the release translates an object's source, without what gcc alone knows."""
        words = self.commands[name]
        return [word for word in words[1:words.index("-o")] if not DROPPED.fullmatch(word)]

    def object(self, name):
        """An object of the release, translated with sanitizers."""
        if name in self.translated:
            return name
        self.translated.add(name)
        flags, needs = self.flags(name), ""
        if "-include" in flags:
            at = flags.index("-include")
            header = self.header(flags[at + 1], flags)
            flags[at:at + 2] = ["-include-pch", f"{self.folder}/{header}"]
            needs = f" | {header}"
        self.lines.append(f"build {name}: translate {self.commands[name][-1]}{needs}\n  flags = {' '.join(flags)} -c\n")
        return name

    def archive(self, library, source=""):
        """A library with its sources, or those with such a name, translated with sanitizers."""
        inputs, variables = self.rule("CXX_STATIC_LIBRARY", f"lib{library}.a")
        ours = [name for name in inputs if name in self.commands and source in name]
        objects = [self.object(name) if name in ours else str(RELEASE / name) for name in inputs]
        self.archives[variables["TARGET_FILE"]] = library
        self.lines.append(f"build {variables['TARGET_FILE']}: archive {' '.join(objects)}\n")

    def link(self, target, libraries, place=None):
        inputs, variables = self.rule("CXX_(?:EXECUTABLE|SHARED_LIBRARY)_LINKER", target)
        flags, objects, needs = variables["LINK_FLAGS"].replace("-Wl,-z,defs", ""), [], []
        if "SONAME" in variables:
            flags += f" -shared -Wl,-soname,{variables['SONAME']}"
        for name in inputs:
            # The shared library has objects of many libraries, a program its own.
            ours = name in self.commands and ("SONAME" not in variables or re.search(r"(\w+)\.dir/", name)[1] in libraries)
            objects.append(f"{self.folder}/{self.object(name)}" if ours else name)
            needs += [self.object(name)] if ours else []
        words = variables["LINK_LIBRARIES"].split()
        needs += dict.fromkeys(word for word in words if word in self.archives)
        words = [f"{self.folder}/{word}" if word in self.archives else word for word in words]
        self.lines.append(f"build {place or target}: link {' '.join(needs)}\n  flags = {flags}\n  objects = {' '.join(objects)}\n"
                          f"  libraries = {' '.join(words)}\n")

    def python_package(self, libraries):
        """The extension module and the provider for ONNX Runtime with sanitizers, around the shared library. Candidates
        are measured by the release's worker, which must not get the sanitizer's library: it limits its memory."""
        site, library = self.folder / "site" / "hone", f"site/hone/prefix/lib/{self.library()[1]}"
        generated = self.folder / "options"
        nanobind, source, python = subprocess.check_output(
            [PYTHON, "-c", "import nanobind, sysconfig\n"
             "print(nanobind.include_dir(), nanobind.source_dir(), sysconfig.get_paths()['include'])"], text=True).split()
        shutil.rmtree(site.parent, ignore_errors=True)
        for package in ("hone", "onnxruntime_ep_hone"):
            shutil.copytree(ROOT / "python" / package, site.parent / package)
        generated.mkdir(exist_ok=True)
        subprocess.run([PYTHON, ROOT / "python" / "make_options.py", ROOT / "include" / "hone", generated], check=True)
        shutil.copy(generated / "_option_docs.py", site)
        shutil.copytree(RELEASE / "tools" / "share", site / "prefix" / "share")
        worker = site / "prefix" / "libexec" / "hone" / "hone-worker"
        worker.parent.mkdir(parents=True)
        worker.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {RELEASE}/tools/libexec/hone/hone-worker "$@"\n')
        worker.chmod(0o755)
        flags = (f"-std=c++20 -fPIC -fvisibility=hidden -fno-strict-aliasing -I{ROOT}/include -I{generated} -I{python} "
                 f"-I{nanobind} -I{source}/../ext/robin_map/include -c")
        objects = []
        for file in (*sorted((ROOT / "python" / "src").glob("*.cc")), Path(source) / "nb_combined.cpp"):
            objects.append(f"python/{file.name}.o")
            flag = "-DNB_BUILD " if file.suffix == ".cpp" else ""
            self.lines.append(f"build {objects[-1]}: translate {file}\n  flags = {flag}{flags}\n")
        self.link(Path(self.library()[0]).name, libraries, library)
        provider = "libhone_onnxruntime_ep.so"
        self.link(provider, ["hone_onnxruntime_ep"], f"site/hone/prefix/lib/{provider}")
        self.lines.append(f"build site/hone/_native.so: link {' '.join(objects)} {library}\n  flags = -shared "
                          f"-Wl,-rpath,'$$ORIGIN/prefix/lib'\n  objects = {' '.join(f'{self.folder}/{o}' for o in (*objects, library))}\n")


def link_installation(folder, targets):
    """What belongs to the program and is not made with sanitizers, such as the worker, from where it and the tests look
    for it."""
    links = {file.relative_to(RELEASE): file for file in (RELEASE / "tools" / "libexec" / "hone").iterdir()}
    links[Path("tools/share")] = RELEASE / "tools" / "share"
    links[Path("src/hone/libexec")] = folder.resolve() / "tools" / "libexec"
    for path, to in links.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink():  # what is built later may not be written into the release
            place.unlink()
        if str(path) not in targets and not place.exists():
            place.symlink_to(to)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to build")
    parser.add_argument("--sanitize", default="address,undefined,float-cast-overflow", help="as in -fsanitize=")
    parser.add_argument("--compiler", default="clang++-16", help="clang 14 and 15 know too little of C++20")
    parser.add_argument("--libraries", nargs="+", default=[], help="what is built with sanitizers, as CMake names it")
    parser.add_argument("--python", action="store_true", help="the Python package, too")
    parser.add_argument("--targets", nargs="+", default=[], help="what is linked, by its path in build/release")
    arguments = parser.parse_args()
    if not (RELEASE / "compile_commands.json").is_file():
        parser.error(f"there is no build in {RELEASE}: cmake --preset release && cmake --build --preset release")
    if (arguments.folder / "CMakeCache.txt").exists():
        parser.error(f"{arguments.folder} is a build by CMake, expected another folder")
    link_installation(arguments.folder, arguments.targets)
    build = Build(arguments.folder.resolve(), arguments.sanitize, arguments.compiler)
    for library in arguments.libraries:
        build.archive(library)
    if "tools/hone/hone" in arguments.targets and "hone_tool" not in arguments.libraries:
        build.archive("hone_tool", source="memory_bound.cc")  # without sanitizers, it limits the program's memory
    for target in arguments.targets:
        build.link(target, arguments.libraries)
    if arguments.python:
        build.python_package(arguments.libraries)
    (arguments.folder / "build.ninja").write_text("".join(build.lines))


if __name__ == "__main__":
    main()
