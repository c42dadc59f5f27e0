"""Small inputs that once failed (tests/cases): each one's values, or that it is refused in one line."""
import json
from pathlib import Path

import numpy as np

import support
from support import Case, hone

CASES = Path(__file__).resolve().parent / "cases"


def difference(found, expected, rtol, atol):
    """What is wrong with an output; nothing if it is right."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}"
    if expected.dtype.kind == "f":
        same = np.allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    else:
        same = np.array_equal(found, expected)
    return "" if same else f"{found.ravel()[:10]}, expected {expected.ravel()[:10]}"


class Cases(Case):
    def fault(self, folder):
        """What is wrong with a case; nothing if it passes."""
        meta = json.loads((folder / "meta.json").read_text())
        arguments = [item for name, file in meta["inputs"].items() for item in ("--input", f"{name}={folder / file}")]
        out = self.folder / folder.name
        done = hone("run", folder / "model.onnx", *arguments, *meta["options"], "--output-dir", out, "--json")
        if meta["want"] == "refuse":
            return "" if done.returncode == 2 and len(done.stderr.splitlines()) == 1 else f"exit code {done.returncode}: {done.stderr}"
        if done.returncode != 0:
            return f"exit code {done.returncode}: {done.stderr}"
        files = {output["name"]: output["file"] for output in json.loads(done.stdout)["outputs"]}
        wrong = []
        for name, file in meta["outputs"].items():
            wrong.append(difference(np.load(out / files[name]), np.load(folder / file), meta["rtol"], meta["atol"]))
            if wrong[-1]:
                wrong[-1] = f"{name}: {wrong[-1]}"
        return "; ".join(filter(None, wrong))

    def test_cases(self):
        folders = sorted(path.parent for path in CASES.glob("*/meta.json"))
        self.assertGreater(len(folders), 10)
        for folder in folders:
            with self.subTest(folder.name):
                self.assertEqual(self.fault(folder), "")


if __name__ == "__main__":
    support.main()
