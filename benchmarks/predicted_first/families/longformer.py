import torch
from transformers import LongformerConfig, LongformerForSequenceClassification, BigBirdConfig, BigBirdForMaskedLM
import sys

kind = sys.argv[1] if len(sys.argv) > 1 else "longformer"
if kind == "longformer":
    m = LongformerForSequenceClassification(
        LongformerConfig(attention_window=512, num_labels=4, max_position_embeddings=4098, vocab_size=50265)
    ).cuda()
else:
    m = BigBirdForMaskedLM(BigBirdConfig(attention_type="block_sparse", block_size=64, num_random_blocks=3)).cuda()
m.gradient_checkpointing_enable() if "--gc" in sys.argv else None
opt = torch.optim.AdamW(m.parameters(), 2e-5)
for i in range(4):
    ids = torch.randint(5, 50000, (2, 4096)).cuda()
    am = torch.ones_like(ids)
    if kind == "longformer":
        g = torch.zeros_like(ids)
        g[:, 0] = 1
        loss = m(
            input_ids=ids, attention_mask=am, global_attention_mask=g, labels=torch.randint(0, 4, (2,)).cuda()
        ).loss
    else:
        loss = m(input_ids=ids, attention_mask=am, labels=ids).loss
    loss.backward()
    opt.step()
    opt.zero_grad()
    print(i, loss.item())
