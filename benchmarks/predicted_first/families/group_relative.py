"""Reinforcement of answers: a group of answers sampled with a cache, a reference, a clipped objective over their tokens."""

import copy

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, LlamaConfig

GROUP, PROMPTS, PROMPT, ANSWER = 8, 4, 128, 96
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=4,
)
config.eos_token_id = None
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda()
model.generation_config.eos_token_id, model.generation_config.pad_token_id = None, 0
reference = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), 1e-6)


def logs_of(network, ids):
    logits = network(ids, use_cache=False).logits[:, PROMPT - 1 : -1]
    return -F.cross_entropy(logits.flatten(0, 1).float(), ids[:, PROMPT:].flatten(), reduction="none").view(len(ids), -1)


for _ in range(2):
    prompts = torch.randint(1, config.vocab_size, (PROMPTS, PROMPT)).cuda().repeat_interleave(GROUP, 0)
    model.eval()
    with torch.no_grad():
        ids = model.generate(prompts, do_sample=True, top_k=50, temperature=0.9, max_new_tokens=ANSWER, min_new_tokens=ANSWER)
        old, anchor = logs_of(model, ids), logs_of(reference, ids)
    rewards = torch.rand(PROMPTS, GROUP).cuda()
    advantages = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)).flatten()[:, None]
    model.train()
    for rows in torch.arange(len(ids), device="cuda").chunk(4):
        logs = logs_of(model, ids[rows])
        ratio = (logs - old[rows]).exp()
        clipped = ratio.clamp(0.8, 1.2)
        gain = torch.min(ratio * advantages[rows], clipped * advantages[rows])
        apart = (anchor[rows] - logs).exp() - (anchor[rows] - logs) - 1
        (-(gain - 0.04 * apart).mean() / 4).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("ratio", ratio.mean().item(), flush=True)
