import torch
from transformers import ModernBertConfig, ModernBertModel
import torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
V = 50368


class MLM(nn.Module):
    def __init__(s):
        super().__init__()
        s.b = ModernBertModel(ModernBertConfig(num_hidden_layers=12))
        s.h = nn.Linear(768, V)

    def forward(s, ids, y):
        h = s.b(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        m = y != -100
        return F.cross_entropy(s.h(h[m]).float(), y[m])


m = MLM().cuda()
opt = torch.optim.AdamW(m.parameters(), 5e-4, eps=1e-6, betas=(0.9, 0.98))
for i in range(4):
    ids = torch.randint(5, V, (32, 512), device="cuda")
    y = ids.clone()
    pick = torch.bernoulli(torch.full(ids.shape, 0.3, device="cuda")).bool()
    y[~pick] = -100
    rep = torch.bernoulli(torch.full(ids.shape, 0.8, device="cuda")).bool() & pick
    ids[rep] = 4
    rnd = torch.bernoulli(torch.full(ids.shape, 0.5, device="cuda")).bool() & pick & ~rep
    ids[rnd] = torch.randint(V, ids.shape, device="cuda")[rnd]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        l = m(ids, y)
    l.backward()
    opt.step()
    opt.zero_grad()
    print(i, l.item())
