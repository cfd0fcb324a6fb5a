"""A language model that sees: CLIP's tower frozen, a projector, Llama in bf16 with checkpoints, pictures put among the words."""

import torch
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

torch.manual_seed(0)
sees = CLIPVisionConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=336, patch_size=14)
speaks = LlamaConfig(vocab_size=32064, hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=4)
config = LlavaConfig(vision_config=sees, text_config=speaks, image_token_index=32000)
model = LlavaForConditionalGeneration(config).to("cuda", torch.bfloat16)
model.model.vision_tower.requires_grad_(False)
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 2e-5, weight_decay=0.0)

for words in (96, 180, 64, 250):
    ids = torch.randint(5, 31000, (4, 576 + words))
    ids[:, 8:584] = 32000
    labels = ids.clone()
    labels[:, :600] = -100
    pictures = torch.randn(4, 3, 336, 336, dtype=torch.bfloat16)
    loss = model(
        input_ids=ids.cuda(), pixel_values=pictures.cuda(), attention_mask=torch.ones_like(ids).cuda(), labels=labels.cuda(), use_cache=False
    ).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
