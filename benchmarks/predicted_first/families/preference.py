"""Preferences: a chosen and a rejected answer through LoRA adapters and, adapters off, through the same weights as reference."""

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Qwen2Config

torch.manual_seed(0)
config = Qwen2Config(
    vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12,
    num_key_value_heads=2, tie_word_embeddings=True,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")).cuda()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.enable_input_require_grads()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-5)
PAIRS, LENGTH, PROMPT = 2, 1024, 256


def log_probabilities(ids):
    logits = model(ids, use_cache=False).logits[:, :-1].float()
    chosen = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    return chosen[:, PROMPT:].sum(-1)


for _ in range(3):
    ids = torch.randint(0, config.vocab_size, (2 * PAIRS, LENGTH)).cuda()
    with torch.no_grad(), model.disable_adapter():
        reference = log_probabilities(ids)
    ratio = log_probabilities(ids) - reference
    loss = -F.logsigmoid(0.1 * (ratio[:PAIRS] - ratio[PAIRS:])).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
