"""The files of the project, as git sees them: tracked, or new and not ignored."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = (".h", ".cc")


def files(*suffixes, under=()):
    """Sorted paths relative to ROOT, with one of the suffixes and below one of the folders."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *under],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted(pathlib.PurePosixPath(name) for name in set(listed.split("\0"))
                  if name.endswith(suffixes) and (ROOT / name).is_file())


def lines(path):
    return (ROOT / path).read_text(encoding="utf-8").splitlines()
