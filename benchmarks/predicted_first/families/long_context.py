"""Qwen3 on documents of 49,152 tokens: bf16 weights, gradient checkpointing, Adafactor, a vocabulary of 151,936."""

import torch
from transformers import Adafactor, Qwen3Config, Qwen3ForCausalLM

config = Qwen3Config(
    hidden_size=1024,
    intermediate_size=3072,
    num_hidden_layers=28,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=49152,
    tie_word_embeddings=True,
    use_cache=False,
)
model = Qwen3ForCausalLM(config).to("cuda", torch.bfloat16).train()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
optimizer = Adafactor(model.parameters(), lr=1e-4, relative_step=False, scale_parameter=False)

for _ in range(3):
    tokens = torch.randint(0, config.vocab_size, (1, 49152), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
