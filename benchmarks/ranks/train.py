"""A Llama on several ranks, in the ways in which people share it: `torchrun --nproc-per-node 2 train.py TASK`."""

import argparse
import os
from functools import partial

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from transformers import LlamaConfig, LlamaForCausalLM

BF16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
NUM_STEPS, BATCH, LENGTH = 4, 4, 512


def llama(hidden=1024, inner=2816, layers=12, vocabulary=32000):
    """A small one, in float32."""
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=hidden,
            intermediate_size=inner,
            num_hidden_layers=layers,
            num_attention_heads=16,
            num_key_value_heads=8,
            vocab_size=vocabulary,
            tie_word_embeddings=False,
        )
    )


def sharded(model, **options):
    """`fully_shard` of every layer and of the rest."""
    for layer in model.model.layers:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def train(model, optimizer, after_step=lambda step: None):
    """Some steps on random tokens."""
    for step in range(NUM_STEPS):
        tokens = torch.randint(0, 32000, (BATCH, LENGTH), device="cuda")
        logits = model(input_ids=tokens, use_cache=False).logits
        F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        after_step(step)


def fsdp(prefetch=0, checkpoint=False, model=None, **options):
    """FSDP2 in bfloat16."""
    model = sharded(llama() if model is None else model, mp_policy=BF16, **options)
    layers = list(model.model.layers)
    for index, layer in enumerate(layers):
        if prefetch:
            layer.set_modules_to_forward_prefetch(layers[index + 1 : index + 1 + prefetch])
            layer.set_modules_to_backward_prefetch(layers[max(0, index - prefetch) : index][::-1])
    if checkpoint:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if "offload_policy" not in options:
        model.cuda()
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-4))


def fsdp_accumulate():
    """Gradients are reduced in every second step only."""
    model = sharded(llama(), mp_policy=BF16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for micro in range(2 * NUM_STEPS):
        model.set_requires_gradient_sync(micro % 2 == 1)
        tokens = torch.randint(0, 32000, (BATCH, LENGTH), device="cuda")
        model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
        if micro % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()


def fsdp_save():
    """The full state dict is gathered on rank 0 after the second step."""
    model = sharded(llama(), mp_policy=BF16).cuda()

    def save(step):
        if step == 1:
            options = StateDictOptions(full_state_dict=True, cpu_offload=True)
            state = get_model_state_dict(model, options=options)
            if dist.get_rank() == 0:
                torch.save(state, os.devnull)

    train(model, torch.optim.AdamW(model.parameters(), lr=1e-4), after_step=save)


def fsdp_evaluate_on_rank_0():
    """Rank 0 alone keeps the logits of a batch that it was given."""
    model = sharded(llama(), mp_policy=BF16).cuda()
    kept = []

    def evaluate(step):
        with torch.no_grad():
            logits = model(input_ids=torch.ones(BATCH, LENGTH, dtype=torch.int64, device="cuda")).logits
        if dist.get_rank() == 0:
            kept.append(logits.float())

    train(model, torch.optim.AdamW(model.parameters(), lr=1e-4), after_step=evaluate)


def hybrid():
    """Sharded over pairs of ranks, replicated over the pairs."""
    mesh = init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=("replicate", "shard"))
    fsdp(mesh=mesh)


def zero():
    """ZeRO-1 under autocast."""
    model = DistributedDataParallel(llama().cuda(), gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-4)
    with torch.autocast("cuda", torch.bfloat16):
        train(model, optimizer)


def tensor_parallel(and_fsdp=False):
    """Attention and MLP of every layer by columns and rows; with FSDP2 over the other half of the ranks."""
    size = dist.get_world_size()
    shape = (size // 2, 2) if and_fsdp else (1, size)
    mesh = init_device_mesh("cuda", shape, mesh_dim_names=("data", "tensor"))
    model = llama().to("cuda", torch.bfloat16)
    columns, rows = ("q_proj", "k_proj", "v_proj"), ("o_proj",)
    plan = {f"self_attn.{name}": ColwiseParallel() for name in columns}
    plan |= {f"self_attn.{name}": RowwiseParallel() for name in rows}
    plan |= {"mlp.gate_proj": ColwiseParallel(), "mlp.up_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel()}
    for layer in model.model.layers:
        parallelize_module(layer, mesh["tensor"], plan)
    if and_fsdp:
        sharded(model, mesh=mesh["data"])
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False))


def lists():
    """Gathered into lists and reduced from them, which NCCL does by way of one tensor."""
    size = dist.get_world_size()
    tensors = [torch.ones(96 << 20, device="cuda") for _ in range(size)]
    mine = torch.ones(96 << 20, device="cuda")
    for _ in range(3):
        dist.all_gather(tensors, mine)
        dist.reduce_scatter(mine, tensors)
    work = dist.all_gather(tensors, mine, async_op=True)
    work.wait()


TASKS = {
    "fsdp": fsdp,
    "fsdp-no-reshard": partial(fsdp, reshard_after_forward=False),
    "fsdp-prefetch": partial(fsdp, prefetch=2),
    "fsdp-checkpoint": partial(fsdp, checkpoint=True),
    "fsdp-offload": partial(fsdp, offload_policy=CPUOffloadPolicy()),
    "fsdp-uneven": lambda: fsdp(model=llama(hidden=1056, inner=2905, layers=7, vocabulary=32001)),
    "fsdp-accumulate": fsdp_accumulate,
    "fsdp-save": fsdp_save,
    "fsdp-rank-0": fsdp_evaluate_on_rank_0,
    "zero": zero,
    "tensor-parallel": tensor_parallel,
    "lists": lists,
    "hybrid": hybrid,
    "tensor-parallel-fsdp": partial(tensor_parallel, and_fsdp=True),
}


def main():
    """Run one of `TASKS` on this rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    task = parser.parse_args().task
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    TASKS[task]()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
