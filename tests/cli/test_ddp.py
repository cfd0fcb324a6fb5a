"""`peaksight run torchrun ...` of a script with DistributedDataParallel."""

import json

import pytest

from helpers_commands import peaksight
from peaksight.units import MIB

pytestmark = pytest.mark.torch

SCRIPT = """
import os, sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
layers = [torch.nn.Linear(2048, 2048, bias=False) for _ in range(4)]
model = DistributedDataParallel(torch.nn.Sequential(*layers).cuda(), gradient_as_bucket_view="--view" in sys.argv)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
for _ in range(3):
    model(torch.randn(8, 2048, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def report_of(tmp_path):
    """Runs the script on two ranks as it is typed, and returns its report."""
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(*options):
        words = ["torchrun", "--nproc-per-node", "2", "train.py", *options]
        done = peaksight("run", "--rank", "0", "--gpu", "h100-80gb", "--json", "-", *words, cwd=tmp_path)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return run


def test_gradients_beside_their_buckets(report_of):
    """GIVEN gradients of 64 MiB that are copied, THEN that is found, and the fix gives what was said."""
    copied, view = report_of(), report_of("--view")
    (finding,) = (finding for finding in copied["findings"] if finding["rule"] == "gradient-buckets")
    saved = copied["peak"]["allocated_bytes"] - view["peak"]["allocated_bytes"]

    assert finding["fixes"][0]["kind"] == "gradient-as-bucket-view"
    assert abs(finding["bytes"] - saved) <= 16 * MIB
    assert saved >= 32 * MIB
    assert "gradient-buckets" not in {finding["rule"] for finding in view["findings"]}
    (late,) = (unknown for unknown in view["not_simulated"] if unknown["slug"] == "bucket-release")
    assert late["at_most_bytes"] == 64 * MIB
