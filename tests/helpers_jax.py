"""Scripts under JAX for tests, and `peaksight run` on them."""

import json
import subprocess
import sys


def written(folder, *lines):
    """A script of these lines after the usual imports."""
    script = folder / "script.py"
    script.write_text("\n".join(("import jax, jax.numpy as jnp, numpy as np", *lines)) + "\n")
    return script


def run(*words, json_file=None):
    options = ["--gpu", "t4", *(["--json", str(json_file), "--force"] if json_file else [])]
    command = [sys.executable, "-m", "peaksight", "run", *options, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def report_of(folder, *lines, options=()):
    """What a script of these lines prints, and its report."""
    file = folder / "report.json"
    process = run(*options, written(folder, *lines), json_file=file)

    assert process.returncode == 0, process.stderr
    return process.stdout, json.loads(file.read_text())
