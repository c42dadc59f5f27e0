#!/usr/bin/env python3
"""Makes the records that come with Hone, data/records/ISA.jsonl: tunes models, then keeps the fastest schedules of each kernel.

    build/venv/bin/python scripts/make_shipped_records.py --hone build/release/tools/hone/hone --db records.db [--budget 60s]

Times are only worth something on a quiet machine. What is in the database counts, too: a second run tunes further, --no-tuning only
writes what there is."""
import argparse
import itertools
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "benchmarks"))

# Several models have each family of kernels, so that some are left when one is excluded.
MODELS = ("resnet18", "resnet50", "vgg16", "alexnet", "mobilenet_v2", "mnasnet1_0", "efficientnet_b0", "squeezenet1_1", "googlenet",
          "inception_v3", "ssdlite320_raw", "bert_base_s128", "mobilebert_s128", "gpt2_s128")


def model_path(name):
    """An ONNX file as it is, or a model of models/ filled with its weights."""
    if name.endswith(".onnx"):
        return Path(name)
    import model_files

    return model_files.filled(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", default=REPOSITORY / "build" / "release" / "tools" / "hone" / "hone", type=Path, help="the program")
    parser.add_argument("--db", required=True, type=Path, help="where the trials are kept")
    parser.add_argument("--models", nargs="+", default=MODELS, help="names in models/, or ONNX files")
    parser.add_argument("--budget", default="60s", help="of tuning each model, per number of threads")
    parser.add_argument("--threads", default="2", help="numbers of threads to tune for, such as 1,2")
    parser.add_argument("--devices", nargs="+", default=["host"], help="host, host-avx2: a file for each instruction set")
    parser.add_argument("--no-tuning", action="store_true", help="only write what the database has")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "data" / "records", help="the folder")
    options = parser.parse_args()
    if not re.fullmatch(r"\d+(,\d+)*", options.threads):
        parser.error(f"--threads: found '{options.threads}', expected numbers such as 1,2")
    library = options.db.with_suffix(".so")
    if not options.no_tuning:
        for name, device, threads in itertools.product(options.models, options.devices, options.threads.split(",")):
            print(f"tuning {name} for {device}, {threads} threads", flush=True)
            # Without what is shipped already: the same machine and models lead to the same kind of file.
            subprocess.run([options.hone, "tune", model_path(name), "-o", library, "--db", options.db, "--budget", options.budget,
                            "--threads", threads, "--device", device, "--no-shipped"], check=True, stdout=subprocess.DEVNULL)
    library.unlink(missing_ok=True)
    options.output.mkdir(parents=True, exist_ok=True)
    subprocess.run([options.hone, "db", "ship", options.output, "--db", options.db], check=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{' '.join(map(str, failed.cmd))}: exit code {failed.returncode}")
