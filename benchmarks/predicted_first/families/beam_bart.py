import torch
from transformers import BartConfig, BartForConditionalGeneration, PegasusConfig, PegasusForConditionalGeneration

m = BartForConditionalGeneration(
    BartConfig(
        encoder_layers=6,
        decoder_layers=6,
        d_model=768,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
    )
).cuda()
opt = torch.optim.AdamW(m.parameters(), 3e-5)
sc = torch.amp.GradScaler()
for i in range(3):
    src, tgt = torch.randint(5, 50000, (8, 768)).cuda(), torch.randint(5, 50000, (8, 128)).cuda()
    tgt[:, -20:] = -100
    with torch.autocast("cuda"):
        l = m(input_ids=src, attention_mask=torch.ones_like(src), labels=tgt).loss
    sc.scale(l).backward()
    sc.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(m.parameters(), 0.1)
    sc.step(opt)
    sc.update()
    opt.zero_grad()
    print(l.item())
m.eval()
g = m.generate(
    src, num_beams=6, max_length=142, min_length=56, no_repeat_ngram_size=3, length_penalty=2.0, early_stopping=True
)
print(g.shape)
g = m.generate(src, num_beams=4, num_return_sequences=4, max_length=64, do_sample=True)
print(g.shape, torch.cuda.max_memory_allocated() / 2**30)
