"""Whisper: speech to text with an encoder-decoder, bf16 autocast, a frozen encoder front, length-sorted labels."""

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

config = WhisperConfig(
    d_model=768,
    encoder_layers=12,
    decoder_layers=12,
    encoder_attention_heads=12,
    decoder_attention_heads=12,
    encoder_ffn_dim=3072,
    decoder_ffn_dim=3072,
)
model = WhisperForConditionalGeneration(config).to("cuda").train()
model.config.use_cache = False
for parameter in model.model.encoder.conv1.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=True)

for _ in range(4):
    features = torch.randn(8, 80, 3000).cuda()
    labels = torch.randint(0, config.vocab_size, (8, 224))
    for row in range(8):
        labels[row, 224 - 16 * row :] = -100
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_features=features, labels=labels.cuda()).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("loss", loss.item(), flush=True)
