"""Qwen2-VL on pictures of many sizes: rotary positions in three directions, the vision tower frozen, LoRA and a trained merger."""

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, Dataset
from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration, get_cosine_schedule_with_warmup

IMAGE, START, END = 31990, 31991, 31992


class Questions(Dataset):
    grids = [(1, 32, 44), (1, 24, 24), (1, 44, 56), (1, 16, 64)]

    def __len__(self):
        return 20

    def __getitem__(self, index):
        grid = torch.tensor(self.grids[index % 4])
        patches = int(grid.prod())
        text = torch.randint(5, 31000, (64 + 16 * (index % 5),))
        ids = torch.cat([torch.tensor([START]), torch.full((patches // 4,), IMAGE), torch.tensor([END]), text])
        return ids, torch.randn(patches, 3 * 2 * 14 * 14), grid


def collate(rows):
    ids = torch.nn.utils.rnn.pad_sequence([row[0] for row in rows], batch_first=True, padding_value=0)
    labels = ids.masked_fill((ids == 0) | (ids >= IMAGE), -100)
    return {
        "input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels, "pixel_values": torch.cat([row[1] for row in rows]),
        "image_grid_thw": torch.stack([row[2] for row in rows]), "mm_token_type_ids": (ids == IMAGE).int(),
    }


torch.manual_seed(0)
config = Qwen2VLConfig(
    text_config={
        "vocab_size": 32000, "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 20, "num_attention_heads": 12,
        "num_key_value_heads": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
    },
    vision_config={"depth": 20, "embed_dim": 1280, "hidden_size": 1536, "num_heads": 16},
    image_token_id=IMAGE, vision_start_token_id=START, vision_end_token_id=END, tie_word_embeddings=True,
)
model = Qwen2VLForConditionalGeneration._from_config(config, dtype=torch.bfloat16)
model = get_peft_model(
    model,
    LoraConfig(
        r=64, lora_alpha=128, lora_dropout=0.05, target_modules=r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj)",
        modules_to_save=["merger"], use_rslora=True,
    ),
)
model.enable_input_require_grads()
model.gradient_checkpointing_enable({"use_reentrant": False})
model.to("cuda").train()
model.print_trainable_parameters()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4, betas=(0.9, 0.99))
scheduler = get_cosine_schedule_with_warmup(optimizer, 1, 10)
for step, batch in enumerate(DataLoader(Questions(), batch_size=4, collate_fn=collate, shuffle=False)):
    batch = {key: value.to("cuda") for key, value in batch.items()}
    batch["pixel_values"] = batch["pixel_values"].bfloat16()
    outputs = model(**batch, use_cache=False)
    outputs.loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    print(step, outputs.loss.item(), norm.item())
