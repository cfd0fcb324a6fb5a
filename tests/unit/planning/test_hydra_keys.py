"""Keys of Hydra's configuration: GIVEN overrides that a plan changes THEN the lines that set them."""

import pytest

from peaksight.planning.hydra_keys import where_set

_SCRIPT = """\
import hydra

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg): ...
"""
_CONFIG = """\
defaults:
  - data: small  # which of conf/data
  - _self_

train:
  # how many at a time
  batch: 8
  accum: 1
other:
  batch: 3
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "conf/data").mkdir(parents=True)
    (tmp_path / "conf/config.yaml").write_text(_CONFIG)
    (tmp_path / "conf/data/small.yaml").write_text("loader:\n  batch: 8\n")
    (tmp_path / "conf/data/large.yaml").write_text("name: large\nloader:\n  batch: 8\n")
    (tmp_path / "train.py").write_text(_SCRIPT)
    return tmp_path / "train.py"


@pytest.mark.parametrize(
    "before, after, where",
    [
        ((), ("train.batch=4", "train.accum=2"), "conf/config.yaml:7, conf/config.yaml:8"),
        (("train.batch=8",), ("train.batch=8", "train.accum=2"), "conf/config.yaml:8"),
        ((), ("data.loader.batch=4",), "conf/data/small.yaml:2"),
        (("data=large",), ("data=large", "data.loader.batch=4"), "conf/data/large.yaml:3"),
        ((), ("batch=4",), ""),
        ((), ("--batch", "4"), ""),
    ],
)
def test_where_keys_are_set(script, before, after, where):
    """In the file that the script names, or in that of the chosen group; nowhere else."""
    assert where_set(script, before, after) == where


def test_a_script_without_hydra(script):
    """It has no such keys."""
    script.write_text("print()\n")

    assert where_set(script, (), ("train.batch=4",)) == ""
