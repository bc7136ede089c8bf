#!/usr/bin/env python3
"""The package as such: types, its wheel, its version, and what it says about itself."""
import os
import re
import shutil
import subprocess
import sys
import zipfile

from sdk_kit import PACKAGE, ROOT, Folder, check, cortex, main, run, skip, test


@test
def types_hold_in_strict_mode():
    mypy = shutil.which("mypy")
    if mypy is None:
        skip("needs mypy")
    with Folder() as folder:
        done = run(mypy, "--strict", "--cache-dir", folder, "--config-file", "pyproject.toml",
                   cwd=PACKAGE)
        check(done.returncode == 0, done.stdout.decode())
        # Programs that use it get types, too, and wrong ones are found.
        (folder / "user.py").write_text(
            "import cortex_recorder as cortex\n"
            "cx = cortex.init('a')\n"
            "@cx.tool(gate='refund')\n"
            "def refund(order: str, amount: int) -> bool: return True\n"
            "reveal_type(refund)\n"
            "refund(1, 2)\n"
            "reveal_type(cx.flush().root)\n")
        done = run(mypy, "--strict", "--cache-dir", folder, "--python-version", "3.9", folder / "user.py",
                   *sorted((PACKAGE / "examples").glob("*.py")),
                   env={**os.environ, "MYPYPATH": str(PACKAGE / "src")})
        said = done.stdout.decode()
        check("def (order: builtins.str, amount: builtins.int) -> builtins.bool" in said, said)
        check(said.count("error:") == 1 and "user.py:6" in said and 'Union[builtins.str, None]' in said,
              said)


@test
def a_wheel_is_built_of_what_debian_has():
    python = "/usr/bin/python3"
    if run(python, "-c", "import setuptools, wheel, pip").returncode != 0:
        skip("needs python3-pip, python3-setuptools and python3-wheel")
    with Folder() as folder:
        shutil.copytree(PACKAGE, folder / "p", ignore=shutil.ignore_patterns("build", "*.egg-info"))
        done = subprocess.run([python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps",
                               "--no-index", "-q", "-w", str(folder), str(folder / "p")],
                              capture_output=True, check=False)
        check(done.returncode == 0, done.stderr.decode()[-2000:])
        wheel, = folder.glob("*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        check("cortex_recorder/py.typed" in names and "cortex_recorder/testing.py" in names, names)
        check("cortex_recorder/_integrations/openai.py" in names)
        meta = zipfile.ZipFile(wheel).read(next(n for n in names if n.endswith("METADATA"))).decode()
        check("Requires-Python: >=3.9" in meta, meta)
        check(not re.search(r"^Requires-Dist: (?!.*extra ==)", meta, re.M), meta)
        check("Provides-Extra: otel" in meta and "Provides-Extra: signing" in meta)
        done = run(python, "-c", "import cortex_recorder; print(cortex_recorder.__version__)",
                   env={"PYTHONPATH": str(wheel)})
        check(done.stdout.decode().strip() == cortex.__version__, done)


@test
def the_version_is_that_of_cortex():
    text = (ROOT / "CMakeLists.txt").read_text()
    check(re.search(r"project\(\s*cortex\s+VERSION\s+([\d.]+)", text).group(1) == cortex.__version__)


@test
def every_public_name_is_documented_by_itself():
    for name in cortex.__all__:
        found = getattr(cortex, name)
        if callable(found) and name != "Redact":
            check((found.__doc__ or "").strip(), name)


if __name__ == "__main__":
    sys.exit(main())
