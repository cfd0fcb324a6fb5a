"""Supervised fine-tuning of a small Llama with a vocabulary of 131072 tokens, in bfloat16."""

import argparse

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, LlamaConfig

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = LlamaConfig(
    vocab_size=131072,
    hidden_size=512,
    intermediate_size=1408,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=2,
    max_position_embeddings=4096,
    use_cache=False,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)

for step in range(20):
    input_ids = torch.randint(config.vocab_size, (2, 2048)).cuda()
    outputs = model(input_ids=input_ids)
    logits = outputs.logits
    shift_logits = logits[:, :-1, :].contiguous()
    shift_labels = input_ids[:, 1:].contiguous()
    loss = F.cross_entropy(shift_logits.view(-1, config.vocab_size), shift_labels.view(-1))
    if args.fixed:
        del outputs, logits, shift_logits
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
