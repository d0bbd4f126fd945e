"""Build the site from the Markdown of the repository: ``python derivations/site/build.py``, no network needed.

It is written to ``build/site``; open its ``index.html``. ``check.py`` looks at every page of it in a browser, and
``print.py`` makes one PDF of it.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SITE = ROOT / "build/site"


def build(out: Path) -> int:
    """Write the site anew into ``out`` and return Sphinx's exit status, 1 where it warns of anything."""
    shutil.rmtree(out, ignore_errors=True)
    command = ["-m", "sphinx", "-W", "--keep-going", "-q", "-c", HERE, "-d", out / "trees", ROOT, out]
    status = subprocess.run([sys.executable, *map(str, command)], cwd=ROOT, check=False).returncode
    if status == 0:
        shutil.rmtree(out / "trees")
        shutil.copyfile(out / "README.html", out / "index.html")  # where a browser looks first
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the site of the derivations.")
    parser.add_argument("--out", type=Path, default=SITE, help="folder to write, default build/site; emptied first")
    out = parser.parse_args().out.resolve()
    status = build(out)
    if status == 0:
        print(out / "index.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
