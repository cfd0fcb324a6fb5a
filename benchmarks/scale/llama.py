"""A Llama under FSDP2 in bfloat16, made on meta and checkpointed layer by layer: `llama.py 70b`."""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

# Hidden size, that of the MLP, layers, heads and their keys: those of Llama 3.
SHAPES = {
    "1b": (2048, 8192, 16, 32, 8),
    "8b": (4096, 14336, 32, 32, 8),
    "70b": (8192, 28672, 80, 64, 8),
    "405b": (16384, 53248, 126, 128, 8),
}

hidden, inner, layers, heads, keys = SHAPES[sys.argv[1]]
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
with torch.device("meta"):
    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=hidden,
            intermediate_size=inner,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=keys,
            vocab_size=128256,
            tie_word_embeddings=False,
        )
    )
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model.model.layers:
    fully_shard(layer, mp_policy=policy)
fully_shard(model, mp_policy=policy)
model.to_empty(device="cuda")
model.init_weights()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(4):
    tokens = torch.randint(0, 128256, (1, 4096), device="cuda")
    model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
