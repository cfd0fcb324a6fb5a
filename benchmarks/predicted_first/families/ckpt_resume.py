import os, torch, torch.nn as nn, torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

d = "cuda"


def build():
    m = GPT2LMHeadModel(GPT2Config(n_layer=12)).to(d)
    return m, torch.optim.AdamW(m.parameters(), 1e-4)


m, o = build()
for i in range(3):
    x = torch.randint(0, 50257, (4, 512), device=d)
    l = m(x, labels=x).loss
    l.backward()
    o.step()
    o.zero_grad()
torch.save({"m": m.state_dict(), "o": o.state_dict(), "rng": torch.cuda.get_rng_state()}, "c.pt")
m2, o2 = build()
ck = torch.load("c.pt", map_location=d)
m2.load_state_dict(ck["m"])
o2.load_state_dict(ck["o"])
print(torch.cuda.memory_allocated() / 2**20, torch.cuda.max_memory_allocated() / 2**20)
for i in range(3):
    x = torch.randint(0, 50257, (4, 512), device=d)
    l = m2(x, labels=x).loss
    l.backward()
    o2.step()
    o2.zero_grad()
    print(l.item())
print(torch.cuda.memory_allocated() / 2**20, torch.cuda.max_memory_allocated() / 2**20)
