import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC, Wav2Vec2BertConfig, HubertConfig, HubertForCTC

torch.manual_seed(0)
m = Wav2Vec2ForCTC(
    Wav2Vec2Config(vocab_size=32, ctc_loss_reduction="mean", mask_time_prob=0.05, apply_spec_augment=True)
).cuda()
m.freeze_feature_encoder()
m.gradient_checkpointing_enable()
opt = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 1e-4, weight_decay=0.005)
sc = torch.amp.GradScaler()
for i in range(4):
    L = torch.randint(60000, 160000, (8,))
    M = int(L.max())
    x = torch.randn(8, M)
    am = (torch.arange(M)[None] < L[:, None]).long()
    y = torch.randint(1, 32, (8, 60))
    y[:, 45:] = -100
    with torch.autocast("cuda", torch.float16):
        l = m(input_values=x.cuda(), attention_mask=am.cuda(), labels=y.cuda()).loss
    sc.scale(l).backward()
    sc.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    sc.step(opt)
    sc.update()
    opt.zero_grad()
    print(i, l.item(), torch.cuda.memory_reserved() >> 20)
