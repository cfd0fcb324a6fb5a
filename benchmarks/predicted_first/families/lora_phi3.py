"""LoRA on Phi-3 medium (14 billion parameters in bf16), long answers, no checkpointing, paged in as on a chat data set."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import Phi3Config, Phi3ForCausalLM, get_cosine_schedule_with_warmup

config = Phi3Config(
    hidden_size=5120,
    intermediate_size=17920,
    num_hidden_layers=40,
    num_attention_heads=40,
    num_key_value_heads=10,
    pad_token_id=0,
    use_cache=False,
)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    base = Phi3ForCausalLM(config)
torch.set_default_dtype(torch.float32)
model = get_peft_model(base, LoraConfig(r=32, lora_alpha=64, lora_dropout=0.05, target_modules="all-linear"))
model.print_trainable_parameters()
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
schedule = get_cosine_schedule_with_warmup(optimizer, 3, 100)

for step in range(6):
    tokens = torch.randint(1, config.vocab_size, (2, 2048)).cuda()
    labels = tokens.clone()
    labels[:, :512] = -100
    loss = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=labels).loss / 2
    loss.backward()
    if step % 2:
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
