"""One training step of a 7B Llama with random weights, as people write it."""

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

config = LlamaConfig()  # the sizes of Llama 2 7B
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
tokens = torch.randint(config.vocab_size, (1, 512)).cuda()
model(input_ids=tokens, labels=tokens).loss.backward()
optimizer.step()
