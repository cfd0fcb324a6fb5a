import torch
from transformers import LlavaConfig, LlavaForConditionalGeneration, CLIPVisionConfig, LlamaConfig

cfg = LlavaConfig(
    vision_config=CLIPVisionConfig(
        hidden_size=1024,
        intermediate_size=4096,
        num_hidden_layers=12,
        num_attention_heads=16,
        image_size=336,
        patch_size=14,
    ),
    text_config=LlamaConfig(
        hidden_size=1536, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=12, vocab_size=32064
    ),
    image_token_index=32000,
)
m = LlavaForConditionalGeneration(cfg).to("cuda", torch.bfloat16)
for n, p in m.named_parameters():
    p.requires_grad_("vision_tower" not in n)
opt = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 2e-5)
for i in range(3):
    B = 4
    ids = torch.cat([torch.full((B, 576), 32000), torch.randint(5, 31000, (B, 200))], 1).cuda()
    px = torch.randn(B, 3, 336, 336, dtype=torch.bfloat16).cuda()
    lab = ids.clone()
    lab[:, :600] = -100
    l = m(input_ids=ids, pixel_values=px, attention_mask=torch.ones_like(ids), labels=lab).loss
    l.backward()
    opt.step()
    opt.zero_grad()
    print(l.item())
