"""Trains the language half of a small LLaVA; its vision tower and its projector are frozen."""

import argparse

import torch
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = LlavaConfig(
    vision_config=CLIPVisionConfig(
        hidden_size=768,
        intermediate_size=3072,
        num_hidden_layers=12,
        num_attention_heads=12,
        image_size=336,
        patch_size=14,
    ),
    text_config=LlamaConfig(
        vocab_size=8192,
        hidden_size=512,
        intermediate_size=1024,
        num_hidden_layers=2,
        num_attention_heads=8,
        use_cache=False,
    ),
    image_token_index=8191,
)
model = LlavaForConditionalGeneration(config).cuda()
model.model.vision_tower.requires_grad_(False)
model.model.multi_modal_projector.requires_grad_(False)
model.train()


def make_inputs_require_grad(module, inputs, output):
    output.requires_grad_(True)


hooked = [model.model.language_model]
if not args.fixed:
    hooked.append(model.model.vision_tower)
for part in hooked:
    part.get_input_embeddings().register_forward_hook(make_inputs_require_grad)

optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=2e-5)
patches = (336 // 14) ** 2
for step in range(6):
    text = torch.randint(8000, (8, 64))
    input_ids = torch.cat([torch.full((8, patches), config.image_token_id), text], dim=1).cuda()
    pixel_values = torch.randn(8, 3, 336, 336).cuda()
    out = model(input_ids=input_ids, pixel_values=pixel_values, labels=input_ids)
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {out.loss.item():.4f}")
