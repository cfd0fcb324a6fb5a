"""Teaches a small Qwen2 to transcribe: a long prompt of audio tokens, a short transcript."""

import argparse

import torch
import torch.nn.functional as F
from transformers import Qwen2Config, Qwen2ForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = Qwen2Config(
    vocab_size=155947,
    hidden_size=256,
    intermediate_size=1024,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    use_cache=False,
)
model = Qwen2ForCausalLM(config).bfloat16().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
AUDIO, TEXT = 7936, 256

for step in range(4):
    input_ids = torch.randint(config.vocab_size, (1, AUDIO + TEXT)).cuda()
    labels = input_ids.clone()
    labels[:, :AUDIO] = -100
    if args.fixed:
        logits = model(input_ids=input_ids, logits_to_keep=TEXT + 1).logits[:, :-1].float()
        loss = F.cross_entropy(logits.flatten(0, 1), labels[:, AUDIO:].flatten())
    else:
        loss = model(input_ids=input_ids, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
