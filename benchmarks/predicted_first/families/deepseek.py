"""Transformers' DeepSeek V3 in little: latent attention, grouped routing of many small experts, shared ones, bf16."""

import torch
from transformers import AutoModelForCausalLM, DeepseekV3Config

torch.manual_seed(0)
config = DeepseekV3Config(
    vocab_size=65024, hidden_size=1024, intermediate_size=3072, moe_intermediate_size=512, num_hidden_layers=8,
    num_attention_heads=16, num_key_value_heads=16, n_routed_experts=32, num_experts_per_tok=6, n_group=4, topk_group=2,
    q_lora_rank=512, kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, first_k_dense_replace=1,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda().train()
decayed = [p for p in model.parameters() if p.dim() > 1]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}], 3e-4, foreach=True)

for step in range(6):
    ids = torch.randint(0, config.vocab_size, (4, 1024)).cuda()
    loss = model(ids, labels=ids, use_cache=False).loss / 2
    loss.backward()
    if step % 2:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
