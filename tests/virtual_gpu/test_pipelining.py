"""Stages of torch.distributed.pipelining, each simulated without its neighbours."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from peaksight.errors import UnsupportedError
from peaksight.virtual_gpu.ranks.told import Told
from peaksight.virtual_gpu.ranks.world import World

from .cards import h100, slugs

pytestmark = pytest.mark.torch

NUM_STAGES, WIDTH = 4, 256


def peak_of_stage(number, told):
    """After two steps of eight micro-batches on a stage: embedding in front, a head at the end.

    What the third and the fourth are given is taken to be as what the second is, and said.
    """
    with h100(num_gpus=NUM_STAGES, world=World(number, NUM_STAGES, NUM_STAGES), told=told) as gpu:
        torch.cuda.set_device(number)
        dist.init_process_group("nccl", init_method="tcp://localhost:99", rank=number, world_size=NUM_STAGES)
        layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
        front = [nn.Embedding(100, WIDTH)] if number == 0 else []
        end = [nn.Linear(WIDTH, 10)] if number == NUM_STAGES - 1 else []
        module, device = nn.Sequential(*front, *layers, *end).cuda(), torch.device("cuda", number)
        stage = PipelineStage(module, number, NUM_STAGES, device)
        schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=nn.functional.mse_loss)
        words = torch.randint(100, (4096, 16), device=device)
        target = torch.zeros(4096, 16, 10, device=device)
        for _ in range(2):
            given = (words,) if number == 0 else ()
            schedule.step(*given, **({"target": target} if number == NUM_STAGES - 1 else {}))
        assert all(parameter.grad is not None for parameter in module.parameters())
        assert ("pipeline-stages" in slugs(gpu)) == (number > 1)
        return torch.cuda.max_memory_allocated()


def test_each_stage_runs_alone():
    """GIVEN 1F1B, THEN an early stage keeps more micro-batches than a late one."""
    told = Told()
    first, second, third, last = (peak_of_stage(number, told) for number in range(NUM_STAGES))

    assert second > third > last
    assert second > first  # which receives nothing


def test_a_stage_before_the_first():
    """GIVEN a pipeline that rank 0 does not begin, THEN nobody knows what a stage is given, and that is said."""
    with pytest.raises(UnsupportedError, match="Can't simulate stage 2 of the pipeline") as caught:
        peak_of_stage(2, Told())

    assert caught.value.slug == "pipeline-stages"
