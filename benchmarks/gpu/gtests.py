"""The parts that run GoogleTest programs: tests on the device, those that hang it, and a sample under compute-sanitizer."""
import platform
import re
import shutil
import subprocess
import time

import parts

# Programs in their order, with their folder in a build: what was never on a device first.
TESTS = {"hone_gpu_space_test": "backend", "hone_device_test": "runtime", "hone_gpu_code_test": "backend", "hone_measure_device_test": "measure",
         "hone_device_model_test": "artifact"}
# Tests by the names of their device; those that need files of the repository are left out.
FILTERS = {"cuda": "*uda*:*lost_gpu*-OpenCl*:*goldens*:*documentation*:*without_a_driver*", "opencl": "*pencl*:*OpenCl*:device_worker.*-*goldens*:*lost_gpu*"}
ON_DEVICE = {"hone_gpu_space_test": {"cuda": "*CudaDevice*", "opencl": "*SpaceOnOpenCl*"}}  # the rest of it needs a compiler
HANGS = "*Watchdog*"  # kernels that do not end, which have a part of their own: a driver may wait for them, and what runs next with it
WATCHDOG = {"cuda": "*Watchdog*uda*", "opencl": "*Watchdog*opencl*"}
# Under compute-sanitizer. Refusals are tested by errors of the driver, and processes that hang are not watched.
SAMPLES = {"hone_gpu_space_test": "*CudaDevice*tiles_that_are_copied_ahead:*CudaDevice*by_matrix_instructions", "hone_device_test": "", "hone_device_model_test": ""}
NO_SAMPLES = "*wrong_code*:*memory_is_short*:*tells_its_pointers*:*cannot_start*:*wrong_with_a_call*:*fork*:*Watchdog*:*a_model_that_is_too_large*"
SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")
# The first tests of a program under a tool that has no more time than this are left to a later run.
LEAST_SANITIZER = 8


def test_command(name, setting, tests="", without=""):
    """Runs the tests for the device, or the given ones, and of these none of `without`."""
    chosen = tests or ON_DEVICE.get(name, FILTERS)[setting.kind]
    if without:
        chosen += (":" if "-" in chosen else "-") + without
    return [parts.program(f"tests/{name}", f"src/hone/{TESTS[name]}/{name}"), f"--gtest_filter={chosen}"]


def run_to_file(setting, file, *command):
    """Runs the command and returns its code and what it printed; None as the code if its time was over. The file has what was printed until then."""
    with file.open("w") as output:
        try:
            code = subprocess.run([*map(str, command)], stdout=output, stderr=subprocess.STDOUT, timeout=setting.left).returncode
        except subprocess.TimeoutExpired:
            code = None
    return code, file.read_text(errors="replace")


def count_tests(output):
    """How many tests passed, were skipped and failed, the names of those, and the one that was running when the output ended."""
    ends = re.findall(r"^\[ +(OK|SKIPPED|FAILED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)$", output, re.MULTILINE)
    begun = re.findall(r"^\[ RUN +\] (\S+)", output, re.MULTILINE)
    named = {word: [name for kind, name in ends if kind == word] for word in ("OK", "SKIPPED", "FAILED")}
    running = begun[-1] if begun and begun[-1] not in [name for _, name in ends] else ""
    return {"passed": len(named["OK"]), "skipped": len(named["SKIPPED"]), "failed": len(named["FAILED"])}, named["FAILED"], running


def run_tests(result, setting, row, command):
    """A row of a program, also if its time was over: then a later run does it once more."""
    begin = time.monotonic()
    file = setting.out / f"tests_{parts.file_name(row)}.txt"
    code, output = run_to_file(setting, file, *command)
    columns, failed, running = count_tests(output)
    if failed:
        columns["problem"] = " ".join(failed)
    elif code not in (0, None) or (code == 0 and columns["passed"] == 0):
        columns["problem"] = f"{running} ended it with code {code}" if running else f"{columns['passed']} passed, code {code}"
    if code is None:
        columns["unfinished"] = f"its time was over in {running or 'its start'}"
    elif "problem" not in columns:
        file.unlink()
    result.add(row, **columns, seconds=round(time.monotonic() - begin, 1))
    if code is None:
        raise parts.NoTime(f"its time was over in {row}")


def tests(result, setting):
    """GoogleTest programs; a row each."""
    parts.described(setting)
    for name in ["hone_device_test"] if setting.small else TESTS:
        if not result.has(name):
            run_tests(result, setting, name, test_command(name, setting, without=HANGS))


def watchdog(result, setting):
    """Kernels that do not end, in processes that give the device up."""
    parts.described(setting)
    row = "hone_device_model_test Watchdog"
    if not result.has(row):
        run_tests(result, setting, row, test_command("hone_device_model_test", setting, WATCHDOG[setting.kind]))


def read_sanitizer(output):
    """What compute-sanitizer says at its end, and the number of errors; None if it did not get there."""
    found = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", output)
    count = re.search(r"SUMMARY: (\d+) (?:errors?|hazards?)", found[-1]) if found else None
    return (found[-1], int(count[1])) if count else ("", None)


def sandbox():
    """The name of what stands between this process and the kernel. gVisor, which says that it is Linux 4.4.0, gives compute-sanitizer no device."""
    return "gVisor" if platform.release().startswith("4.4.0") else ""


def sanitizer_program(setting):
    if setting.kind != "cuda":
        raise parts.CannotRun("compute-sanitizer is of CUDA only")
    if sandbox():
        raise parts.CannotRun(f"compute-sanitizer does not work on {sandbox()} (kernel {platform.release()})")
    path = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if path is None:
        raise parts.CannotRun("there is no compute-sanitizer")
    return path


def sanitizer(result, setting):
    """A sample of the tests under each of compute-sanitizer's tools, those of the kernels that were never on a device first."""
    path = sanitizer_program(setting)
    parts.described(setting)
    for name, tests in SAMPLES.items():
        for tool in SANITIZERS:
            row = f"{tool} {name}"
            if result.has(row):
                continue
            if setting.left < LEAST_SANITIZER:
                raise parts.NoTime(f"a row takes {LEAST_SANITIZER} s")
            sanitize(result, setting, row, [path, "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9",
                                            *test_command(name, setting, tests, NO_SAMPLES)])


def sanitize(result, setting, row, command):
    file = setting.out / f"sanitizer_{parts.file_name(row)}.txt"
    code, output = run_to_file(setting, file, *command)
    if "Device not supported" in output:
        raise parts.CannotRun("compute-sanitizer says: Device not supported")
    summary, errors = read_sanitizer(output)
    columns, _, running = count_tests(output)
    columns |= {"summary": summary, "errors": errors}
    if code is None:
        result.add(row, **columns, unfinished=f"its time was over in {running or 'its start'}")
        raise parts.NoTime(f"its time was over in {row}")
    if code != 0 or errors != 0:
        columns["problem"] = f"code {code}"
        file.write_text(output[:200_000])
    else:
        file.unlink()
    result.add(row, **columns)

