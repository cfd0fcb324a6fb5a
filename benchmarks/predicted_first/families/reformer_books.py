"""Reformer on a book of 16384 letters: reversible layers, hashed attention by buckets, axial positions, chunked feed-forward and head."""

import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import Adafactor, ReformerConfig, ReformerModelWithLMHead

torch.manual_seed(0)
LENGTH = 16384
config = ReformerConfig(
    vocab_size=320, attention_head_size=64, attn_layers=["local", "lsh"] * 6, axial_pos_shape=(128, 128), axial_pos_embds_dim=(192, 576),
    hidden_size=768, feed_forward_size=3072, num_attention_heads=12, max_position_embeddings=LENGTH, lsh_attn_chunk_length=128,
    local_attn_chunk_length=128, num_buckets=[16, 16], num_hashes=2, chunk_size_feed_forward=4096, chunk_size_lm_head=4096, is_decoder=True,
    use_cache=False, hidden_dropout_prob=0.05, lsh_attention_probs_dropout_prob=0.1,
)
model = ReformerModelWithLMHead(config).cuda()
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters")
optimizer = Adafactor(model.parameters(), lr=1e-3, scale_parameter=False, relative_step=False, warmup_init=False, beta1=0.9)
scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 2))
book = torch.randint(2, 320, (64 * LENGTH,))


def batch(size):
    starts = torch.randint(0, len(book) - LENGTH, (size,))
    return torch.stack([book[start : start + LENGTH] for start in starts]).cuda()


for step in range(3):
    model.train()
    optimizer.zero_grad()
    total = 0.0
    for _ in range(2):
        ids = batch(2)
        loss = model(input_ids=ids, labels=ids).loss / 2
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    print(f"step {step} bits {total / 0.6931:.3f}")
model.eval()
with torch.no_grad():
    ids = batch(1)
    print("valid", model(input_ids=ids, labels=ids, num_hashes=4).loss.item())
