"""WHEN every name of a system's script is another, THEN every finding is the same: nothing is told by names."""

import subprocess
import sys

import pytest

from systems.renaming import renamed
from systems.running import SYSTEMS, essence, report_in, report_on

pytestmark = pytest.mark.models

# The arguments of the runs: as other tests have them, so that no run is made twice.
OF_THE_TRANSLATOR = (
    "--variant note --checkpointing --scale small --warmup 0 --decode-after 0 --decode-every 1 --steps 2"
)
RUNS = {
    "dcal_vit": ("--variant", "before", "--depth", "4", "--steps", "2"),
    "eeg_bimamba": ("--variant", "note", "--scale", "small", "--steps", "2"),
    "llm_translator": tuple(OF_THE_TRANSLATOR.split()),
    "flan_t5_xl": ("--variant", "before", "--layers", "2", "--batch", "2", "--accumulation", "2", "--steps", "2"),
}

SCRIPT = """
import argparse
from dataclasses import dataclass
from torch import nn
SIZES = {"width": 3}

@dataclass
class Scale:
    width: int
    depth: int = 2
    chunk: int = 1

class Network(nn.Module):
    def __init__(self, scale, width=4):
        super().__init__()
        self.projected, self.depth = nn.Linear(scale.width, width), scale.depth
    def forward(self, x):
        return self.twice(x, times=self.depth * Scale(1).chunk)
    def twice(self, x, times):
        return f"{self.projected.weight.shape[0] * times} {[number for number in range(times)]}"

parser = argparse.ArgumentParser()
parser.add_argument("--num-layers", type=int, default=3)
args = parser.parse_args()
print(Network(Scale(**SIZES, depth=args.num_layers))(1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("system", RUNS)
def test_findings_are_the_same_under_other_names(system, tmp_path):
    renamed(SYSTEMS / system, tmp_path)

    assert essence(report_in(tmp_path, *RUNS[system])) == essence(report_on(system, *RUNS[system]))


def test_a_renamed_script_does_the_same(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "new").mkdir()

    renamed(tmp_path, tmp_path / "new")

    text = (tmp_path / "new" / "train.py").read_text()
    assert all(name not in text for name in ("Network", "projected", "twice", "times", "number", "Scale(", "depth"))
    assert all(name in text for name in ("nn.Linear", "weight.shape", "forward", "num_layers", '"width"'))
    assert _printed(tmp_path / "new") == _printed(tmp_path) == "12 [0, 1, 2]\n"


def _printed(directory):
    return subprocess.run([sys.executable, "train.py"], cwd=directory, capture_output=True, text=True).stdout
