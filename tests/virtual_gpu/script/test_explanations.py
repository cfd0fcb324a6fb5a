"""Failures that a real run would not have had are explained in a sentence with a slug."""

import socket
import sys
import urllib.request

import pytest

from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import Scratch, explain, process_limit, run_script


@pytest.fixture(autouse=True)
def no_package_stays():
    """Packages that a test made up are not imported for the next."""
    yield
    for name in ("xformers", "apex", "unsloth"):
        sys.modules.pop(name, None)


def explanation_of(directory, script):
    """What is said of the failure of `script`."""
    (directory / "train.py").write_text(script)
    with Scratch() as scratch:
        ending = run_script(ScriptCommand(target=str(directory / "train.py")))
        assert ending.exit_code
        return explain(ending.error, scratch.refused_hosts())


@pytest.mark.parametrize(
    ("script", "package", "way_out"),
    [
        ("import surely_absent.part", "surely_absent", "Install it there."),
        ("import flash_attn_interface", "flash_attn_interface", 'attn_implementation="sdpa"'),
        (
            "try:\n    import mamba_ssm\nexcept ImportError:\n    raise SystemExit('no mamba')",
            "mamba_ssm",
            "path without",
        ),
        (
            "raise ImportError('Please install `bitsandbytes`: pip install -U bitsandbytes')",
            "bitsandbytes",
            "optimizer",
        ),
        ("raise ImportError('FlashAttention2 does not seem to be installed')", "flash_attn", "sdpa"),
        ("import importlib.metadata as m\nm.version('xformers')", "xformers", "scaled_dot_product_attention"),
    ],
)
def test_a_package_that_is_not_installed(script, package, way_out, tmp_path):
    """The package, the environment that lacks it, and how to go on."""
    error = explanation_of(tmp_path, script)

    assert "not-installed" == error.slug
    assert str(error).startswith(f"'{package}' is not installed in {sys.prefix}, where peaksight runs")
    assert way_out in str(error)


@pytest.mark.parametrize(
    "script",
    [
        "import urllib.request\nurllib.request.urlopen('https://data.example.com/train.tar')",
        "import socket\nsocket.create_connection(('data.example.com', 80))",
        "import urllib.request\ntry:\n    urllib.request.urlopen('http://data.example.com')\n"
        "except OSError:\n    raise RuntimeError('no data') from None",
    ],
)
def test_a_download(script, tmp_path):
    """The host is named."""
    error = explanation_of(tmp_path, script)

    assert "network-off" == error.slug
    assert str(error).startswith("The script wanted something from data.example.com, and a simulated run is offline.")


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ("RuntimeError(text)", "The script wanted something from data.example.com"),
        ("LookupError('no corpus')", "Before it failed, the script wanted something from data.example.com"),
    ],
)
def test_a_download_whose_error_was_lost(failure, said, tmp_path):
    """As torchvision's datasets, which try mirrors and raise an error of their own."""
    script = f"""
import urllib.request
text = "tried:"
for scheme in ("http", "https"):
    try:
        urllib.request.urlopen(scheme + "://data.example.com/images.gz")
    except OSError as error:
        text += " data.example.com: " + str(error)
raise {failure}
"""
    error = explanation_of(tmp_path, script)

    assert "network-off" == error.slug
    assert str(error).startswith(said)


@pytest.mark.models
def test_a_download_from_the_hub(tmp_path):
    """Offline, the hub's library asks nobody."""
    script = "from huggingface_hub import hf_hub_download\nhf_hub_download('nobody/surely-absent', 'model.bin')"

    assert "huggingface.co" in str(explanation_of(tmp_path, script))


def test_a_download_that_a_library_hides(tmp_path):
    """As `datasets` does: the cause is only a word in an error of its own."""
    error = explanation_of(tmp_path, "raise ConnectionError('no imdb on the Hub (OfflineModeIsEnabled)') from None")

    assert "network-off" == error.slug
    assert "huggingface.co" in str(error)


def test_more_processes_than_people_start(tmp_path, monkeypatch):
    """A fork bomb ends at its limit, and is told so."""
    monkeypatch.setattr(process_limit, "MAX_PROCESSES", 0)
    error = explanation_of(tmp_path, "import os\nif os.fork() == 0:\n    os._exit(0)")

    assert "too-many-processes" == error.slug


def test_after_a_stand_in_was_read():
    """Such a value may be why it failed; not for running out of memory, nor for an exit of the script's own."""
    error = explain(ValueError("sizes differ"), (), "train.py:7")

    assert "values" == error.slug
    assert "train.py:7" in str(error)
    assert explain(ValueError("sizes differ")) is None
    assert explain(SystemExit(1), (), "train.py:7") is None
    assert explain(type("OutOfMemoryError", (RuntimeError,), {})(), (), "train.py:7") is None


def test_kernels_of_a_package_itself(tmp_path):
    """A failure inside such a package is its kernels', which find no card."""
    (tmp_path / "xformers").mkdir()
    (tmp_path / "xformers" / "__init__.py").write_text("def attention():\n    raise RuntimeError('expected CUDA')")
    error = explanation_of(tmp_path, "import xformers\nxformers.attention()")

    assert "own-kernels" == error.slug
    assert "To simulate the script, use torch's scaled_dot_product_attention." in str(error)


@pytest.mark.parametrize(
    "script",
    [
        "1 / 0",
        "open('data/train.bin')",
        "raise SystemExit(3)",
        "raise ImportError('cannot import name x from y')",
        "class OutOfMemoryError(RuntimeError): pass\n"
        "try:\n    import surely_absent\nexcept ImportError:\n    raise OutOfMemoryError",
    ],
)
def test_failures_of_the_scripts_own(script, tmp_path):
    """They have nothing to explain, running out of memory least of all."""
    assert explanation_of(tmp_path, script) is None


def test_refusals_from_elsewhere():
    """An error of the network outside of a run names no host."""
    assert explain(socket.gaierror(1, "unknown")) is None
    assert explain(urllib.request.URLError("down")) is None


def test_the_package_that_was_called_is_named(tmp_path):
    """Where one calls another, as unsloth calls others."""
    for package, code in (
        ("unsloth", "import apex\ndef load():\n    apex.launch()"),
        ("apex", "def launch():\n    raise OSError('no card')"),
    ):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(code)

    assert "load the model with transformers" in str(explanation_of(tmp_path, "import unsloth\nunsloth.load()"))
