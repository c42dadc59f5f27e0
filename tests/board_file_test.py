"""hone-serve as one file for boards: what it needs of the board."""
import re
import subprocess
from pathlib import Path

import support
from support import Case


def program_for(machine):
    """hone-serve as hone deploy finds it."""
    return Path(support.HONE).parent.parent / "share" / "hone" / "boards" / machine / "hone-serve"


class OneFile(Case):
    def check(self, machine):
        program = program_for(machine)
        if not program.exists():
            self.skipTest(f"there is no hone-serve for {machine}: docs/user/remote.md says how to build the target hone_board_{machine}")
        text = subprocess.run(["readelf", "-dV", program], capture_output=True, text=True, check=True).stdout
        libraries = set(re.findall(r"\(NEEDED\).*\[(.*?)\.so", text))
        self.assertLessEqual(libraries, {"libc", "libm", "libdl", "libpthread", "librt", "libresolv", "ld-linux-aarch64", "ld-linux-x86-64"})
        versions = [int(number) for number in re.findall(r"GLIBC_2\.(\d+)", text)]
        self.assertLessEqual(max(versions), 36)  # Debian 12's; docs/user/remote.md says which

    def test_for_aarch64_needs_glibc_alone(self):
        self.check("aarch64")

    def test_for_x86_64_needs_glibc_alone(self):
        self.check("x86_64")


if __name__ == "__main__":
    support.main()
